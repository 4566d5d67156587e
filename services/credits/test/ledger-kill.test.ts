import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DAY_MS, systemClock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { ada, RETENTION_MS } from './ledger-harness.ts';
import { allRows, faultsOf } from './ledger-invariants.ts';

interface Line {
  call: string;
  method?: 'grant' | 'reserve' | 'settle' | 'release';
  args?: unknown[];
  answer?: { outcome: string; state?: string };
}

const ROUNDS = 6;
const folder = temporaryFolder();
afterAll(() => folder.remove());

/** The lines that a child has written so far, without the last one, which may be incomplete. */
const linesOf = (log: string): Line[] =>
  readFileSync(log, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

async function killAfter(file: string, organizationId: string, log: string, lines: number): Promise<void> {
  const out = openSync(log, 'a');
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'ledger-child.ts'), file, organizationId],
    { stdio: ['ignore', out, 'inherit'] },
  );
  closeSync(out);
  const exited = once(child, 'exit');
  while (child.exitCode === null && linesOf(log).length < lines) await delay(5);
  child.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

it('loses nothing acknowledged, doubles nothing and leaves nothing reserved after kill -9 at any time', async () => {
  const file = join(folder.path, 'credits.db');
  const organizationId = newId();
  const logs = Array.from({ length: ROUNDS }, (_, round) => join(folder.path, `round-${round}.log`));
  for (const [round, log] of logs.entries()) await killAfter(file, organizationId, log, 300 + 97 * round);

  const lines = logs.flatMap(linesOf);
  const answers = new Map(lines.flatMap(({ call, answer }) => (answer ? [[call, answer] as const] : [])));
  const calls = lines.filter((line) => line.method);
  const unanswered = calls.filter(({ call }) => !answers.has(call));
  let nowMs = systemClock.now();
  const { ledger, close } = await openSqliteLedger(file, { clock: { now: () => nowMs }, retentionMs: RETENTION_MS });
  const repeat = ({ method, args }: Line) =>
    (ledger[method!] as (...all: unknown[]) => Promise<NonNullable<Line['answer']>>)(organizationId, ...args!, ada);

  expect(await faultsOf(ledger, organizationId)).toEqual([]);
  const rows = await allRows(ledger, organizationId);
  const present = new Set(rows.map(({ kind, id }) => `${kind} ${id}`));
  const doubled = rows.length - present.size;
  let lost = 0;
  const ended = new Set(
    calls.filter(({ method }) => method === 'settle' || method === 'release').map(({ args }) => args![0]),
  );
  for (const { call, method, args } of calls) {
    const answer = answers.get(call);
    const id = method === 'grant' || method === 'reserve' ? (args![0] as { id: string }).id : args![0];
    const acknowledged =
      answer && (answer.outcome === 'GRANTED' || answer.outcome === 'RESERVED' || method === 'settle');
    if (acknowledged && !present.has(`${method!.toUpperCase()} ${id}`)) lost++;
    // repeating a settle, release or grant returns the same answer; a reservation may have ended since
    if (acknowledged && method === 'settle') expect(await repeat({ call, method, args })).toEqual(answer);
    if (answer?.outcome === 'GRANTED')
      expect(await repeat({ call, method, args })).toMatchObject({ outcome: 'GRANTED' });
    if (answer?.outcome === 'RESERVED' && !ended.has(id))
      expect(await repeat({ call, method, args })).toMatchObject({ outcome: 'RESERVED', state: 'OPEN' });
    if (answer && method === 'release') expect(await repeat({ call, method, args })).toEqual(answer);
  }
  expect(await allRows(ledger, organizationId)).toEqual(rows);

  // a caller without an answer repeats its call
  for (const line of unanswered) await repeat(line);
  expect(await faultsOf(ledger, organizationId)).toEqual([]);
  nowMs += DAY_MS;
  const swept = await ledger.expire(organizationId, 10_000);
  expect(await ledger.balance(organizationId)).toMatchObject({ reservedMicros: 0, openReservations: 0 });
  expect(await faultsOf(ledger, organizationId)).toEqual([]);
  await close();
  console.log(
    `${ROUNDS} kills: ${answers.size} commands acknowledged, ${lost} lost, ${doubled} doubled; ` +
      `${unanswered.length} unanswered and repeated; ${swept} reservations swept`,
  );
  expect([lost, doubled]).toEqual([0, 0]);
  expect(answers.size).toBeGreaterThan(500);
});
