import { RETENTION_MS, type CloudEvent, type Topic } from '../bus.ts';
import type { SharedConnection } from './connection.ts';

export const SCHEMA = `
  CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS event_of_topic ON event (topic, seq);
  CREATE TABLE IF NOT EXISTS progress (topic TEXT NOT NULL, "group" TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (topic, "group")) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS dead_letter (topic TEXT NOT NULL, "group" TEXT NOT NULL, event TEXT NOT NULL, error TEXT NOT NULL, at TEXT NOT NULL) STRICT`;

/** The right to consume a topic for a group. Every take raises the epoch, so the epoch names its holder. */
export interface TopicLease {
  readonly topic: Topic;
  readonly group: string;
  readonly epoch: number;
  /** Place of the last event that the group is done with. */
  readonly seq: number;
}
export interface LoggedEvent {
  readonly seq: number;
  readonly event: string;
}

export type EventLog = ReturnType<typeof eventLog>;

/** The events of all topics in one file, and how far each group has come. Times are milliseconds since the epoch. */
export function eventLog({ db, read, write }: SharedConnection) {
  const insert = db.prepare('INSERT INTO event (id, topic, at, event) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING');
  const forget = db.prepare(`DELETE FROM event WHERE seq IN (SELECT seq FROM (
    SELECT seq, at FROM event WHERE topic = :topic AND seq <= (SELECT coalesce(min(seq), 9e18) FROM progress WHERE topic = :topic) ORDER BY seq LIMIT :limit) WHERE at < :before)`);
  const join = db.prepare('INSERT INTO progress (topic, "group") VALUES (?, ?) ON CONFLICT DO NOTHING');
  const free = `topic = :topic AND "group" = :group AND (until <= :now OR epoch = :held)`;
  const waiting = db.prepare(
    `SELECT 1 FROM progress WHERE ${free} AND EXISTS (SELECT 1 FROM event WHERE event.topic = progress.topic AND event.seq > progress.seq)`,
  );
  const take = db.prepare(`UPDATE progress SET epoch = epoch + 1, until = :until WHERE ${free} RETURNING epoch, seq`);
  const after = db.prepare('SELECT seq, event FROM event WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?');
  const extend = db.prepare('UPDATE progress SET until = ? WHERE topic = ? AND "group" = ? AND epoch = ?');
  const commit = db.prepare('UPDATE progress SET seq = ?, until = ? WHERE topic = ? AND "group" = ? AND epoch = ?');
  const bury = db.prepare('INSERT INTO dead_letter (topic, "group", event, error, at) VALUES (?, ?, ?, ?, ?)');

  const letters = db.prepare(
    'SELECT rowid AS seq, event FROM dead_letter WHERE topic = ? AND "group" = ? AND rowid > ? ORDER BY rowid LIMIT 1',
  );
  const discard = db.prepare('DELETE FROM dead_letter WHERE rowid = ?');

  return {
    /** Appends in this order; an id that is there already is not stored again. Forgets up to twice as many events that are past the topic's retention and that every group has passed. */
    append(topic: Topic, events: readonly CloudEvent[], now: number): Promise<void> {
      const rows = events.map((event) => [event.id, topic, now, JSON.stringify(event)] as const);
      return write(() => {
        for (const row of rows) insert.run(...row);
        forget.run({ topic, limit: 2 * rows.length, before: now - RETENTION_MS[topic] });
      });
    },
    /** Makes the group known: it starts with the oldest event kept. */
    join: (topic: Topic, group: string): Promise<unknown> => write(() => join.run(topic, group)),
    /** True when events wait and the lease is free or this holder's own. */
    waiting: (topic: Topic, group: string, heldEpoch: number, now: number): Promise<boolean> =>
      read(() => waiting.get({ topic, group, held: heldEpoch, now }) !== undefined),
    /** Undefined when another member holds the lease. */
    async take(
      topic: Topic,
      group: string,
      heldEpoch: number,
      now: number,
      until: number,
    ): Promise<TopicLease | undefined> {
      const row = await write(() => take.get({ topic, group, held: heldEpoch, now, until }));
      return row && { topic, group, epoch: Number(row.epoch), seq: Number(row.seq) };
    },
    after: (topic: Topic, seq: number, limit: number): Promise<LoggedEvent[]> =>
      read(() => after.all(topic, seq, limit) as unknown as LoggedEvent[]),
    /** False when the lease was lost; so with `commit` and `bury`. `until` 0 gives it back. */
    extend: ({ topic, group, epoch }: TopicLease, until: number): Promise<boolean> =>
      write(() => extend.run(until, topic, group, epoch).changes === 1),
    /** Moves the group past `seq`. */
    commit: ({ topic, group, epoch }: TopicLease, seq: number, until: number): Promise<boolean> =>
      write(() => commit.run(seq, until, topic, group, epoch).changes === 1),
    /** Moves the group past the event, which goes to the dead letters. `at` is ISO-8601 UTC. */
    bury: (
      { topic, group, epoch }: TopicLease,
      { seq, event }: LoggedEvent,
      error: string,
      at: string,
      until: number,
    ): Promise<boolean> =>
      write(() => {
        const kept = commit.run(seq, until, topic, group, epoch).changes === 1;
        if (kept) bury.run(topic, group, event, error, at);
        return kept;
      }),
    /** The oldest dead letter of the group after place `seq`. */
    deadLetter: (topic: Topic, group: string, seq: number): Promise<LoggedEvent | undefined> =>
      read(() => letters.get(topic, group, seq) as unknown as LoggedEvent | undefined),
    discard: (seq: number): Promise<unknown> => write(() => discard.run(seq)),
  };
}
