import type { Backlog, Topic } from '../bus.ts';
import { packEvents, unpackEvents, type Block } from './blocks.ts';
import type { SharedConnection } from './connection.ts';
import { blockWriter } from './tables.ts';

/** The right to consume a topic for a group. Each take raises the epoch, so an epoch identifies one holder. */
export interface TopicLease {
  readonly topic: Topic;
  readonly group: string;
  readonly epoch: number;
  /** Position of the last event that the group has handled. */
  readonly seq: number;
}
/** An event and its position. */
export interface LoggedEvent {
  readonly seq: number;
  readonly event: string;
}

export type EventLog = ReturnType<typeof eventLog>;

/** The events of all topics in one file, and the position of each group. Times are milliseconds since 1970. */
export function eventLog({ db, read, write }: SharedConnection) {
  const writeBlocks = blockWriter(db);
  // Both look at no more rows than they may remove, so that other processes wait only briefly.
  const removeBlocks = db.prepare(`DELETE FROM block WHERE last IN (SELECT last FROM (
    SELECT last, at FROM block
    WHERE topic = :topic AND last <= (SELECT coalesce(min(seq), 9e18) FROM progress WHERE topic = :topic)
    ORDER BY last LIMIT :limit) WHERE at < :before) RETURNING count`);
  const removeLetters = db.prepare(`DELETE FROM dead_letter WHERE rowid IN (SELECT seq FROM (
    SELECT rowid AS seq, at FROM dead_letter ORDER BY rowid LIMIT :limit) WHERE at < :before)`);
  const join = db.prepare('INSERT INTO progress (topic, "group") VALUES (?, ?) ON CONFLICT DO NOTHING');
  const free = `topic = :topic AND "group" = :group AND (until <= :now OR epoch = :held)`;
  const waiting = db.prepare(
    `SELECT 1 FROM progress WHERE ${free}
    AND EXISTS (SELECT 1 FROM block WHERE block.topic = progress.topic AND block.last > progress.seq)`,
  );
  const take = db.prepare(`UPDATE progress SET epoch = epoch + 1, until = :until WHERE ${free} RETURNING epoch, seq`);
  const after = db.prepare('SELECT last, count, events FROM block WHERE topic = ? AND last > ? ORDER BY last');
  const extend = db.prepare('UPDATE progress SET until = ? WHERE topic = ? AND "group" = ? AND epoch = ?');
  const commit = db.prepare('UPDATE progress SET seq = ?, until = ? WHERE topic = ? AND "group" = ? AND epoch = ?');
  const bury = db.prepare('INSERT INTO dead_letter (topic, "group", event, error, at) VALUES (?, ?, ?, ?, ?)');

  const letters = db.prepare(
    'SELECT rowid AS seq, event FROM dead_letter WHERE topic = ? AND "group" = ? AND rowid > ? ORDER BY rowid LIMIT 1',
  );
  const unhandled = db.prepare(`SELECT coalesce(sum(min(count, last - seq)), 0) AS events FROM progress
    JOIN block ON block.topic = progress.topic AND last > seq WHERE progress.topic = ? AND "group" = ?`);
  const countLetters = db.prepare(
    'SELECT count(*) AS letters FROM (SELECT 1 FROM dead_letter WHERE topic = ? AND "group" = ? LIMIT ?)',
  );
  const discard = db.prepare('DELETE FROM dead_letter WHERE rowid = ?');

  return {
    /** Appends in this order. */
    async append(topic: Topic, events: readonly string[], now: number): Promise<void> {
      const blocks = packEvents(events);
      if (blocks.length > 0) await write(() => writeBlocks(topic, blocks, now));
    },
    /**
     * Removes those of the oldest `limit` blocks whose events every group has handled and that are from before this
     * time. Resolves to the number of events.
     */
    removeEvents: (topic: Topic, before: number, limit: number): Promise<number> =>
      write(() => removeBlocks.all({ topic, limit, before }).reduce((sum, { count }) => sum + Number(count), 0)),
    /** Removes those of the oldest `limit` dead letters that are from before this time (ISO-8601 UTC). */
    removeDeadLetters: (before: string, limit: number): Promise<number> =>
      write(() => Number(removeLetters.run({ limit, before }).changes)),
    /** Registers the group, at the oldest event that is kept. */
    join: (topic: Topic, group: string): Promise<unknown> => write(() => join.run(topic, group)),
    /** True when there are events for the group and its lease is free or has `heldEpoch`. */
    waiting: (topic: Topic, group: string, heldEpoch: number, now: number): Promise<boolean> =>
      read(() => waiting.get({ topic, group, held: heldEpoch, now }) !== undefined),
    /** Takes the lease until `until`; undefined when another member holds it. */
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
    /** The events after this position, in whole blocks: `limit`, or more of the last block. */
    after: (topic: Topic, seq: number, limit: number): Promise<LoggedEvent[]> =>
      read(() => {
        const found: LoggedEvent[] = [];
        for (const row of after.iterate(topic, seq)) {
          const { last, count, events } = row as unknown as Block & { last: number };
          const first = last - count + 1;
          unpackEvents({ count, events }).forEach((event, place) => {
            if (first + place > seq) found.push({ seq: first + place, event });
          });
          if (found.length >= limit) break;
        }
        return found;
      }),
    /**
     * Extends the lease, or releases it with `until` 0. False when it was lost; `commit` and `bury` return the same.
     */
    extend: ({ topic, group, epoch }: TopicLease, until: number): Promise<boolean> =>
      write(() => extend.run(until, topic, group, epoch).changes === 1),
    /** Marks the event at `seq` as handled by the group. */
    commit: ({ topic, group, epoch }: TopicLease, seq: number, until: number): Promise<boolean> =>
      write(() => commit.run(seq, until, topic, group, epoch).changes === 1),
    /** Makes the event a dead letter of the group and marks it as handled. `at` is ISO-8601 UTC. */
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
    /** The oldest dead letter of the group after position `seq`. */
    deadLetter: (topic: Topic, group: string, seq: number): Promise<LoggedEvent | undefined> =>
      read(() => letters.get(topic, group, seq) as unknown as LoggedEvent | undefined),
    /** How many events are after the position of the group, and how many dead letters it has, counted up to `most`. */
    backlog: (topic: Topic, group: string, most: number): Promise<Backlog> =>
      read(() => ({
        events: Number(unhandled.get(topic, group)!.events),
        deadLetters: Number(countLetters.get(topic, group, most)!.letters),
      })),
    discard: (seq: number): Promise<unknown> => write(() => discard.run(seq)),
  };
}
