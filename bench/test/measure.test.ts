import { noRequests } from '../load/closed-loop.ts';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { TOPICS } from 'platform/events/bus.ts';
import { countingEnv, workOf } from '../measure/counters.ts';
import { ratiosOf } from '../commands/compare.ts';
import { drain } from '../measure/drain.ts';
import { verdicts } from '../measure/goals.ts';
import { mainThreadOf, descendantsCpuOf, pssOf, treePssOf } from '../measure/processes.ts';
import type { Round } from '../measure/round.ts';
import type { RecordCounts, Records } from '../systems/records.ts';

const BURN = `
  while (process.cpuUsage().user < 100_000);
  const { user, system } = process.cpuUsage();
  process.stdout.write(String(user + system));`;

describe('processes', () => {
  it('the CPU time of descendants includes those that have ended', () => {
    const before = descendantsCpuOf(process.pid);
    const used = Number(execFileSync(process.execPath, ['-e', BURN], { encoding: 'utf8' }));
    // the operating system counts hundredths of a second
    expect(descendantsCpuOf(process.pid) - before).toBeGreaterThanOrEqual(used - 20_000);
  });

  it('a main thread runs or waits for a core while it has work, and neither while it waits for input', async () => {
    const program = `while (process.cpuUsage().user < 100_000); process.stdout.write('up'); process.stdin.resume();`;
    const child = spawn(process.execPath, ['-e', program]);
    await once(child.stdout, 'data');
    // threads of V8 have a part of the 100 ms
    expect(mainThreadOf(child.pid as number).ran).toBeGreaterThan(50_000);
    let last: unknown;
    await eventually(() => {
      const before = last;
      last = mainThreadOf(child.pid as number);
      return isDeepStrictEqual(before, last);
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('the memory of a process includes its children', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdout.write("up"); process.stdin.resume()']);
    await once(child.stdout, 'data');
    const ofChild = pssOf(child.pid as number);
    expect(treePssOf(process.pid) - pssOf(process.pid)).toBeGreaterThan(ofChild / 2);
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
});

describe('a process that counts its work', () => {
  it('counts transactions, and changes outside of one', async () => {
    const folder = temporaryFolder();
    const program = `
      const { DatabaseSync } = require('node:sqlite');
      const db = new DatabaseSync(':memory:');
      db.exec('CREATE TABLE t (a)');
      db.exec('BEGIN; INSERT INTO t VALUES (1); COMMIT');
      const insert = db.prepare('INSERT INTO t VALUES (?)');
      insert.run(2);
      db.exec('BEGIN');
      insert.run(3);
      insert.run(4);
      db.prepare('COMMIT').run();
      db.prepare('SELECT * FROM t').all();
      process.stdout.write('done');
      process.stdin.resume();`;
    const child = spawn(process.execPath, ['-e', program], { env: countingEnv(folder.path) });
    await once(child.stdout, 'data');
    expect(await workOf(folder.path, child.pid as number)).toEqual({ commits: 3, calls: 0, messages: 0 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    folder.remove();
  });
});

describe('the check after requests that changed something', () => {
  const none = Object.fromEntries([...TOPICS, 'audit entries'].map((name) => [name, 0])) as RecordCounts;
  const two = { ...noRequests(), get: 5, create: 2 };
  const twoCreated = { ...none, 'memory.change.v1': 2, 'audit.v1': 2, 'audit entries': 2 };

  /** Each look finds the next backlog and counts; the last ones stay. */
  function recordsWith(backlogs: number[], counts: RecordCounts): Records {
    return {
      backlog: async () => ({ outbox: backlogs.length > 1 ? backlogs.shift()! : backlogs[0]!, ledgers: 0, audit: 0 }),
      counts: async () => counts,
      oldestMs: () => 0,
      close: async () => undefined,
    };
  }

  it('waits for the backlog and passes when there is one event and one audit entry for each change', async () => {
    const { backlog, failures } = await drain(recordsWith([2, 1, 0], twoCreated), none, two);
    expect([backlog.outbox, failures]).toEqual([2, []]);
  });

  it('fails when an audit entry is missing, and when there is one too many', async () => {
    const missing = await drain(recordsWith([0], { ...twoCreated, 'audit entries': 1 }), none, two, 1);
    expect(missing.failures).toEqual(['audit entries: 1 in place of 2']);
    const doubled = await drain(recordsWith([0], { ...twoCreated, 'audit entries': 3 }), none, two);
    expect(doubled.failures).toEqual(['audit entries: 3 in place of 2']);
  });

  it('fails when the backlog does not drain', async () => {
    const stuck = await drain(recordsWith([7], none), none, two, 1);
    expect(stuck.failures).toHaveLength(3);
  });
});

describe('the goals', () => {
  const lineOf = (figures: Record<string, number>, what: string): string =>
    verdicts(figures).find((line) => line.includes(what)) as string;

  it.each([
    [
      { 'product get cpu': 80, 'stock get cpu': 100 },
      /^met .*80 µs; 0\.8 × stock get \(100 µs; medians\); goal: at most 0\.8 ×/,
    ],
    [{ 'product get cpu': 81, 'stock get cpu': 100 }, /^missed .*0\.81 ×/],
    [{ 'product get cpu': 80 }, /^not measured/],
  ])('%j', (figures, line) => {
    expect(lineOf(figures, 'get, CPU per request')).toMatch(line);
  });

  it('a ratio of rounds beside each other counts in place of the ratio of medians', () => {
    const figures = { 'product run cpu': 800, 'stock create in place of run cpu': 300 };
    expect(lineOf(figures, 'run, CPU per request')).toMatch(/^missed .*2\.67 × stock create in place of run/);
    const ratio = { 'product run cpu / stock create in place of run cpu': 2.4 };
    expect(lineOf({ ...figures, ...ratio }, 'run, CPU per request')).toMatch(/^met .*2\.4 ×/);
  });

  it('rounds are compared with those beside them', () => {
    const rounds = (...cpus: number[]): Round[] =>
      cpus.map((cpu) => ({ cpu: { one: cpu }, requestsPerSecond: 1_000 / cpu }) as unknown as Round);
    const systems = [
      { name: 'product get', rounds: rounds(100, 200, 400) },
      { name: 'stock get', rounds: rounds(50, 200, 300) },
    ];
    expect(ratiosOf(systems)).toMatchObject({
      'product get cpu / stock get cpu': 4 / 3,
      'product get req/s / stock get req/s': 3 / 4,
    });
  });

  it('memory is that of the scenario that takes most', () => {
    expect(lineOf({ 'product get pss': 500, 'product run pss': 601 }, 'under load')).toMatch(/^missed .*601 MB/);
  });
});
