import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TOPICS, eventText, type CloudEvent, type EventBus } from 'platform/events/bus.ts';
import { openSharedFile } from 'platform/events/sqlite/connection.ts';
import { packEvents } from 'platform/events/sqlite/blocks.ts';
import { eventLog } from 'platform/events/sqlite/event-log.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { blockWriter, prepareTables } from 'platform/events/sqlite/tables.ts';
import { makeLog } from 'platform/core/log.ts';
import { StartError } from 'platform/core/start-error.ts';
import { busSuite } from './bus-suite.ts';
import { eventOf } from './event-of.ts';
import { Seen } from './seen.ts';

const log = makeLog('test', 'silent');

busSuite('SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bus-'));
  const file = join(folder, 'events.sqlite');
  return {
    open: () => openSqliteBus(file, { pollMs: 10, leaseMs: 30_000, log }),
    child: ['sqlite', file],
    async deadLetters(topic, group) {
      using db = new DatabaseSync(file, { readOnly: true });
      const rows = db.prepare('SELECT event, error FROM dead_letter WHERE topic = ? AND "group" = ?').all(topic, group);
      return rows.map(({ event, error }) => ({
        id: (JSON.parse(String(event)) as CloudEvent).id,
        error: String(error),
      }));
    },
    remove: async () => rmSync(folder, { recursive: true }),
  };
});

/** Closed at the end of its block, also when an expectation fails. */
const closing = (bus: EventBus) => Object.assign(bus, { [Symbol.asyncDispose]: () => bus.close() });

const textOf = (n: number): string => JSON.stringify(eventOf('o', n));

describe('the event file', () => {
  const TOPIC = 'audit.v1';
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bus-'));
    file = join(folder, 'events.sqlite');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('wakes subscriptions of the same process at once', async () => {
    const bus = await openSqliteBus(file, { pollMs: 3_600_000, log });
    const seen = new Seen<string>();
    await bus.subscribe(TOPIC, 'g', async ({ id }) => seen.add(id), { maxAttempts: 1, retryDelayMs: 1 });
    const [one, two] = [eventOf('o', 1), eventOf('o', 2)];
    await bus.publish(TOPIC, [eventText(one)]);
    await seen.count(1);
    await bus.publish(TOPIC, [eventText(two)]);
    await seen.count(2);
    await bus.close();
    expect(seen.items).toEqual([one.id, two.id]);
  });

  it('moves what is not an event to the dead letters, delivers what follows, and passes over it in a replay', async () => {
    await using bus = closing(await openSqliteBus(file, { pollMs: 10, log }));
    using writer = new DatabaseSync(file);
    const write = blockWriter(writer);
    const malformed = ['{"id":', '', 'null', '[]', '"text"', '5'];
    write(TOPIC, packEvents(malformed), Date.now());
    write(TOPIC, [{ count: 2, events: Buffer.from('no block') }], Date.now());
    const sound = eventOf('o', 1);
    await bus.publish(TOPIC, [eventText(sound)]);
    const seen = new Seen<string>();
    const retries = { maxAttempts: 600, retryDelayMs: 3_600_000 };
    await bus.subscribe(TOPIC, 'g', async ({ id }) => seen.add(id), retries);
    await seen.count(1);
    expect(seen.items).toEqual([sound.id]);
    const buried = () => writer.prepare('SELECT event FROM dead_letter ORDER BY rowid').all();
    expect(buried().map(({ event }) => event)).toEqual([...malformed, '', '']);
    expect(await bus.replay(TOPIC, 'g', async ({ id }) => seen.add(id))).toBe(0);
    expect(buried()).toHaveLength(malformed.length + 2);
  });

  it('does not stop the event loop while another process writes', async () => {
    const bus = await openSqliteBus(file, { log });
    using writer = new DatabaseSync(file);
    writer.exec('BEGIN IMMEDIATE');
    let published = false;
    const publishing = bus.publish(TOPIC, [eventText(eventOf('o', 1))]).then(() => {
      published = true;
    });
    const longestTurnOf = async (turns: number): Promise<number> => {
      let longestMs = 0;
      for (let turn = 0; turn < turns; turn++) {
        const from = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 0));
        longestMs = Math.max(longestMs, performance.now() - from);
      }
      return longestMs;
    };
    // a turn may be long because the machine stalls, but not in each round
    const rounds = [await longestTurnOf(50), await longestTurnOf(50), await longestTurnOf(50)];
    expect(published).toBe(false);
    expect(Math.min(...rounds)).toBeLessThan(2_000);
    writer.exec('COMMIT');
    await publishing;
    expect(writer.prepare('SELECT sum(count) AS n FROM block').get()).toEqual({ n: 1 });
    await bus.close();
  });

  describe('with few commits', () => {
    const { exec } = DatabaseSync.prototype;
    let commits: number;
    beforeEach(() => {
      commits = 0;
      DatabaseSync.prototype.exec = function (sql) {
        if (sql === 'COMMIT') commits++;
        return exec.call(this, sql);
      };
    });
    afterEach(() => void Object.assign(DatabaseSync.prototype, { exec }));

    it('stores what is published in one turn, on whatever topic', async () => {
      await using bus = closing(await openSqliteBus(file, { log }));
      commits = 0;
      await Promise.all(TOPICS.flatMap((topic) => [1, 2].map((n) => bus.publish(topic, [eventText(eventOf('o', n))]))));
      expect(commits).toBe(1);
    });

    it('gives a handler many events at once, and notes its place once for all of them', async () => {
      await using bus = closing(await openSqliteBus(file, { log, leaseMs: 3_600_000 }));
      const published = Array.from({ length: 1_000 }, (_, n) => eventOf('o', n));
      for (let from = 0; from < 1_000; from += 10)
        await bus.publish(TOPIC, published.slice(from, from + 10).map(eventText));
      const seen = new Seen<CloudEvent>();
      let calls = 0;
      commits = 0;
      const member = await bus.subscribe(TOPIC, 'g', async (event) => seen.add(event), {
        maxAttempts: 1,
        retryDelayMs: 1,
        async handleTogether(events) {
          calls++;
          events.forEach((event) => seen.add(event));
        },
      });
      await seen.count(1_000);
      await member.stop();
      expect(seen.items).toEqual(published);
      expect(calls).toBe(5);
      // Beside the batches: joining the group, taking its lease and releasing it.
      expect(commits).toBe(calls + 3);
    });
  });

  it('lets another member replace one whose lease expired, which then can commit, bury and extend nothing', async () => {
    const connection = await openSharedFile(file, prepareTables);
    const events = eventLog(connection);
    await events.join(TOPIC, 'g');
    await events.append(TOPIC, [textOf(1)], 0);
    const late = await events.take(TOPIC, 'g', 0, 1_000, 2_000);
    const [logged] = await events.after(TOPIC, late!.seq, 10);
    expect(await events.waiting(TOPIC, 'g', 0, 1_999)).toBe(false);
    expect(await events.take(TOPIC, 'g', 0, 1_999, 3_000)).toBeUndefined();
    const next = await events.take(TOPIC, 'g', 0, 2_000, 3_000);
    expect(next).toEqual({ ...late, epoch: late!.epoch + 1 });
    expect(await events.commit(late!, logged!.seq, 9_000)).toBe(false);
    expect(await events.bury(late!, logged!, 'Error', '2026-01-01T00:00:00.000Z', 9_000)).toBe(false);
    expect(await events.extend(late!, 9_000)).toBe(false);
    expect(connection.db.prepare('SELECT count(*) AS n FROM dead_letter').get()).toEqual({ n: 0 });
    expect(await events.waiting(TOPIC, 'g', next!.epoch, 2_500)).toBe(true);
    expect(await events.commit(next!, logged!.seq, 3_500)).toBe(true);
    expect(await events.waiting(TOPIC, 'g', next!.epoch, 2_500)).toBe(false);
    connection.db.close();
  });

  describe('removes what is past its retention', () => {
    const signal = new AbortController().signal;
    const DAY = 24 * 3_600_000;
    const rows = (table: string): number => {
      using db = new DatabaseSync(file, { readOnly: true });
      return db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n as number;
    };

    it('events when every group has handled them, whether or not further events are published', async () => {
      const bus = await openSqliteBus(file, { log });
      const connection = await openSharedFile(file, prepareTables);
      const events = eventLog(connection);
      await events.join(TOPIC, 'fast');
      await events.join(TOPIC, 'slow');
      const many = 1_200;
      const published = Array.from({ length: many }, (_, n) => textOf(n));
      await events.append(TOPIC, published.slice(0, many - 3), 0);
      await events.append(TOPIC, published.slice(many - 3), 0);
      await events.append('memory.change.v1', [textOf(many)], 0);
      await events.append(TOPIC, [textOf(many + 1)], DAY);
      const [first] = await events.after(TOPIC, 0, 1);
      const pass = async (group: string, seq: number): Promise<boolean> =>
        events.commit((await events.take(TOPIC, group, 0, 0, 0))!, seq, 0);
      await pass('fast', first!.seq + many + 1);
      await pass('slow', first!.seq + many - 4);

      expect(await bus.removeExpired!(7 * DAY, signal)).toBe(0);
      expect(await bus.removeExpired!(7 * DAY + 1, signal)).toBe(1);
      expect(await bus.removeExpired!(30 * DAY, signal)).toBe(0);
      expect(await bus.removeExpired!(30 * DAY + 1, signal)).toBe(many - 3);
      expect((await events.after(TOPIC, 0, 9)).map(({ event }) => (JSON.parse(event) as CloudEvent).data.n)).toEqual([
        many - 3,
        many - 2,
        many - 1,
        many + 1,
      ]);
      await pass('slow', first!.seq + many + 1);
      expect(await bus.removeExpired!(31 * DAY, signal)).toBe(3);
      expect(await bus.removeExpired!(31 * DAY + 1, signal)).toBe(1);
      expect(rows('block')).toBe(0);
      connection.db.close();
      await bus.close();
    });

    it('dead letters after their own retention', async () => {
      const bus = await openSqliteBus(file, { pollMs: 3_600_000, log, deadLetterRetentionMs: 2 * DAY });
      const given = new Seen<string>();
      const fail = async ({ id }: CloudEvent): Promise<void> => {
        given.add(id);
        throw new Error('no');
      };
      const member = await bus.subscribe(TOPIC, 'g', fail, { maxAttempts: 1, retryDelayMs: 1 });
      const before = Date.now();
      await bus.publish(TOPIC, [eventOf('o', 1), eventOf('o', 2)].map(eventText));
      await given.count(2);
      await member.stop();
      const after = Date.now();
      expect(rows('dead_letter')).toBe(2);
      expect(await bus.removeExpired!(before + 2 * DAY, signal)).toBe(0);
      expect(await bus.removeExpired!(after + 2 * DAY + 1, signal)).toBe(2);
      expect(rows('dead_letter')).toBe(0);
      await bus.close();
    });

    it('by an index, never by a walk through other topics or what is kept', async () => {
      const { prepare } = DatabaseSync.prototype;
      const prepared: string[] = [];
      DatabaseSync.prototype.prepare = function (sql) {
        prepared.push(sql);
        return prepare.call(this, sql);
      };
      const bus = await openSqliteBus(file, { log }).finally(() => Object.assign(DatabaseSync.prototype, { prepare }));
      using db = new DatabaseSync(file);
      const removal = prepared.find((sql) => sql.startsWith('DELETE FROM block'))!;
      const plan = db
        .prepare(`EXPLAIN QUERY PLAN ${removal}`)
        .all()
        .map(({ detail }) => String(detail));
      expect(plan).toContain('SEARCH block USING INDEX block_of_topic (topic=? AND rowid<?)');
      expect(plan.filter((step) => step.startsWith('SCAN block') || step.includes('TEMP B-TREE'))).toEqual([]);
      await bus.close();
    });

    it('in pieces, so that a process that stops does not wait for all of it', async () => {
      const bus = await openSqliteBus(file, { log });
      const connection = await openSharedFile(file, prepareTables);
      const events = eventLog(connection);
      await Promise.all(Array.from({ length: 1_200 }, (_, n) => events.append(TOPIC, [textOf(n)], 0)));
      connection.db.close();
      const stopping = new AbortController();
      const removing = bus.removeExpired!(31 * DAY, stopping.signal);
      stopping.abort();
      expect(await removing).toBeLessThan(1_200);
      await bus.close();
    });
  });

  it('says in one sentence why it cannot be opened', async () => {
    mkdirSync(join(folder, 'a-folder'));
    writeFileSync(file, 'this is no database, and it is long enough for SQLite to see that'.repeat(20));
    for (const path of [file, join(file, 'below', 'events.sqlite'), join(folder, 'a-folder')]) {
      await expect(openSqliteBus(path, { log })).rejects.toThrow(StartError);
      await expect(openSqliteBus(path, { log })).rejects.toThrow(/^The event file .* cannot be opened: /);
    }
  });
});
