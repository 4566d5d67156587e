import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { eventText, type CloudEvent, type Topic } from 'platform/events/bus.ts';
import { auditEntryOp, eventOp } from 'platform/events/outbox.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { openSharedFile } from 'platform/events/sqlite/connection.ts';
import { isOldFile, prepareTables } from 'platform/events/sqlite/tables.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import type { Op } from 'platform/store/store.ts';
import { eventOf } from './event-of.ts';
import { Seen } from './seen.ts';

const log = makeLog('test', 'silent');
const TOPIC = 'audit.v1';
let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bus-'));
  file = join(folder, 'events.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the event file takes little room', () => {
  const organizations = Array.from({ length: 100 }, () => ({ id: newId(), token: newId(), typeId: newId() }));
  const eventIn = (op: Op): CloudEvent => JSON.parse((op as unknown as { document: { event: string } }).document.event);
  /** The two events of the n-th object that is created. */
  function eventsOfObject(n: number): [CloudEvent, CloudEvent] {
    const { id: organizationId, token, typeId } = organizations[n % organizations.length]!;
    const common = { organizationId, source: '/memory', time: new Date().toISOString() };
    const request = { actor: { kind: 'server_token', id: token, name: 'bench', via: '' }, requestId: newId() };
    const id = newId();
    const data = { id, typeId, type: 'customer', key: `customer-${n}`, revision: 1, ...request };
    const change = {
      topic: 'memory.change.v1',
      type: 'memory.object.created.v1',
      subject: `objects/${id}`,
      sequence: 1,
      data,
    } as const;
    const entry = {
      action: 'memory_object.create',
      outcome: 'success',
      target: { type: 'memory_object', id },
    } as const;
    return [eventIn(eventOp({ ...common, ...change })), eventIn(auditEntryOp({ ...common, ...request, ...entry }))];
  }

  it.each([
    [1, 700],
    [10, 420],
    [50, 350],
  ])('with the events of %i objects in a batch: at most %i bytes for an object', async (batch, most) => {
    const objects = 5_000;
    const bus = await openSqliteBus(file, { log });
    const publishing: Promise<void>[] = [];
    for (let n = 0; n < objects; n += batch) {
      const pairs = Array.from({ length: batch }, (_, i) => eventsOfObject(n + i));
      const [changes, entries] = [pairs.map(([change]) => change), pairs.map(([, entry]) => entry)];
      publishing.push(
        bus.publish('memory.change.v1', changes.map(eventText)),
        bus.publish('audit.v1', entries.map(eventText)),
      );
    }
    await Promise.all(publishing);
    await bus.close();
    using db = new DatabaseSync(file);
    const { bytes } = db
      .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
      .get() as { bytes: number };
    process.stdout.write(`${batch} objects in a batch: ${Math.round(bytes / objects)} bytes of events for an object\n`);
    expect(bytes / objects).toBeLessThanOrEqual(most);
  });
});

describe('an event file of the release that stored one row for each event', () => {
  const OTHER = 'memory.change.v1';
  const stored = Array.from({ length: 1_300 }, (_, n) => eventOf('o', n));
  /** Every third event is on the other topic. Events 0 to 8 are past their retention and removed. */
  const topicOf = (n: number): Topic => (n % 3 === 0 ? OTHER : TOPIC);
  /** Those that follow the first `handled` events of both topics. */
  const numbersAfter = (topic: Topic, handled: number): number[] =>
    stored.map((_, n) => n).filter((n) => n >= Math.max(handled, 9) && topicOf(n) === topic);

  function makeOldFile(): void {
    using db = new DatabaseSync(file);
    db.exec(`PRAGMA journal_mode = WAL;
      CREATE TABLE event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL,
        at INTEGER NOT NULL, event TEXT NOT NULL) STRICT;
      CREATE INDEX event_of_topic ON event (topic, seq);
      CREATE TABLE progress (
        topic TEXT NOT NULL, "group" TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0,
        until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (topic, "group")) STRICT, WITHOUT ROWID;
      CREATE TABLE dead_letter (
        topic TEXT NOT NULL, "group" TEXT NOT NULL, event TEXT NOT NULL, error TEXT NOT NULL, at TEXT NOT NULL) STRICT;
      BEGIN`);
    const insert = db.prepare('INSERT INTO event (id, topic, at, event) VALUES (?, ?, ?, ?)');
    stored.forEach((event, n) => insert.run(event.id, topicOf(n), Date.now(), JSON.stringify(event)));
    const group = db.prepare('INSERT INTO progress (topic, "group", seq) VALUES (?, ?, ?)');
    // The seq of event n is n + 1.
    group.run(TOPIC, 'new', 0);
    group.run(TOPIC, 'at the oldest', 9);
    group.run(TOPIC, 'half-way', 701);
    group.run(TOPIC, 'done', 1_300);
    group.run(OTHER, 'half-way', 700);
    db.exec('DELETE FROM event WHERE seq < 10; COMMIT');
  }

  /** The events that the group gets, up to one that is published now. */
  async function receivedBy(topic: Topic, group: string): Promise<number[]> {
    const bus = await openSqliteBus(file, { log });
    const seen = new Seen<number>();
    await bus.publish(topic, [eventText(eventOf('o', -1))]);
    const add = async ({ data }: CloudEvent): Promise<void> => seen.add(data.n as number);
    await bus.subscribe(topic, group, add, { maxAttempts: 1, retryDelayMs: 1 });
    await seen.until((items) => items.at(-1) === -1);
    await bus.close();
    return seen.items.slice(0, -1);
  }

  it.each<[Topic, string, number]>([
    [TOPIC, 'new', 0],
    [TOPIC, 'at the oldest', 9],
    [TOPIC, 'half-way', 701],
    [TOPIC, 'done', 1_300],
    [OTHER, 'half-way', 700],
    [OTHER, 'a group that joins now', 0],
  ])('is upgraded: on %s the group "%s" continues where it was', async (topic, group, handled) => {
    makeOldFile();
    expect(await receivedBy(topic, group)).toEqual(numbersAfter(topic, handled));
  });

  it('is as it was when the upgrade is killed, and upgraded at the next start', async () => {
    makeOldFile();
    const killed = new DatabaseSync(file);
    killed.exec('BEGIN IMMEDIATE');
    prepareTables(killed);
    killed.close();
    using db = new DatabaseSync(file);
    expect(db.prepare('SELECT count(*) AS n FROM event').get()).toEqual({ n: 1_291 });
    expect(await receivedBy(TOPIC, 'half-way')).toEqual(numbersAfter(TOPIC, 701));
    expect(db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'event'").get()).toEqual({ n: 0 });
  });

  it('is waited for while another process upgrades it, and not longer', async () => {
    makeOldFile();
    using other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    prepareTables(other);
    let asked = 0;
    const opening = openSharedFile(file, prepareTables, {
      giveUpMs: 0,
      isOld(db) {
        if (++asked === 3) other.exec('COMMIT');
        return isOldFile(db);
      },
    });
    (await opening).db.close();
    expect(asked).toBeGreaterThanOrEqual(3);
    other.exec('BEGIN IMMEDIATE');
    await expect(openSharedFile(file, prepareTables, { giveUpMs: 0, isOld: isOldFile })).rejects.toThrow('locked');
  });

  it('whose events were all removed gives its groups what is published next', async () => {
    makeOldFile();
    using db = new DatabaseSync(file);
    db.exec('DELETE FROM event');
    expect(await receivedBy(TOPIC, 'done')).toEqual([]);
  });
});
