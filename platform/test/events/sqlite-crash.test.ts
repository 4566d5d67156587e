import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import type { CloudEvent } from 'platform/events/bus.ts';
import { unpackEvents, type Block } from 'platform/events/sqlite/blocks.ts';
import { Seen } from './seen.ts';

const KILLS = 12;
const idOf = (line: string): string => line.split(' ')[1]!;

describe('killing publishers and consumers of one event file with SIGKILL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bus-crash-'));
  const file = join(folder, 'events.sqlite');
  const acknowledged = new Seen<string>();
  const handled = new Seen<string>();
  const children: Child[] = [];
  type Child = ChildProcessByStdio<null, Readable, null>;

  function start(role: 'publish' | 'consume', name: string, lines: Seen<string>): Child {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'bus-child.ts'), 'sqlite', file, role, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface(child.stdout).on('line', (line) => lines.add(line));
    return child;
  }
  const kill = (child: Child): Promise<unknown> =>
    new Promise((resolve) => {
      child.once('close', resolve);
      child.kill('SIGKILL');
    });

  afterAll(async () => {
    await Promise.all(children.filter((child) => child.exitCode === null && child.signalCode === null).map(kill));
    rmSync(folder, { recursive: true });
  });

  it('loses no acknowledged event and keeps each publisher’s order', async () => {
    const roles = [
      () => start('publish', 'a', acknowledged),
      () => start('publish', 'b', acknowledged),
      () => start('consume', 'g', handled),
      () => start('consume', 'g', handled),
    ];
    children.push(...roles.map((begin) => begin()));
    await handled.count(1);
    for (let n = 0; n < KILLS; n++) {
      await acknowledged.count(acknowledged.items.length + 5 + Math.floor(Math.random() * 60));
      const victim = n % roles.length;
      await kill(children[victim]!);
      children[victim] = roles[victim]!();
    }
    await Promise.all(children.slice(0, 2).map(kill));
    await handled.until((items) => {
      const delivered = new Set(items.map(idOf));
      return acknowledged.items.every((line) => delivered.has(idOf(line)));
    });
    await Promise.all(children.slice(2).map(kill));

    using db = new DatabaseSync(file);
    const blocks = db.prepare('SELECT count, events FROM block').all() as unknown as Block[];
    const events = blocks.flatMap(unpackEvents).map((event) => JSON.parse(event) as CloudEvent);
    const stored = new Map(events.map((event) => [event.id, event]));
    const delivered = new Set(handled.items.toSorted().map(idOf));
    console.info(
      `${KILLS} kills: ${acknowledged.items.length} acknowledged, ${stored.size} stored, ${handled.items.length - delivered.size} delivered again`,
    );
    expect(acknowledged.items.filter((line) => !stored.has(idOf(line)))).toEqual([]);
    expect(db.prepare('SELECT count(*) AS n FROM dead_letter').get()).toEqual({ n: 0 });
    expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    for (const organization of ['a', 'b']) {
      const firsts = [...delivered].filter((id) => stored.get(id)!.organizationid === organization);
      expect(firsts).toEqual(firsts.toSorted());
    }
  });
});
