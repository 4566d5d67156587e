import { setImmediate as nextTurn } from 'node:timers/promises';
import { isoTime } from '../../core/clock.ts';
import { makeLog } from '../../core/log.ts';
import { Notifier } from '../../core/notifier.ts';
import { cutBackLog, LOG_LIMIT_BYTES } from '../../store/sqlite/database.ts';
import {
  DEAD_LETTER_RETENTION_MS,
  MOST_DEAD_LETTERS,
  parseEvent,
  RejectedEventError,
  RETENTION_MS,
  TOPICS,
  type EventBus,
  type Subscription,
} from '../bus.ts';
import { openSharedFile } from './connection.ts';
import { eventLog } from './event-log.ts';
import { startMember } from './subscription.ts';
import { isOldFile, prepareTables } from './tables.ts';

/**
 * The event bus in one SQLite file that the processes of one machine share. A topic has one partition, so one member of
 * a group consumes it at a time; another member replaces one that died after `leaseMs`. Events that other processes
 * publish are noticed within `pollMs`.
 * @throws StartError when the file cannot be opened
 */
export async function openSqliteBus(
  file: string,
  {
    pollMs = 100,
    leaseMs = 10_000,
    deadLetterRetentionMs = DEAD_LETTER_RETENTION_MS,
    log = makeLog('events', 'warn'),
  } = {},
): Promise<EventBus> {
  const connection = await openSharedFile(file, prepareTables, { isOld: isOldFile });
  const events = eventLog(connection);
  const notifier = new Notifier();
  const members = new Set<Subscription>();
  return {
    async publish(topic, published) {
      const texts = published.map(({ text }) => text);
      await events.append(topic, texts, Date.now());
      notifier.notify();
    },
    async subscribe(topic, group, handler, options) {
      await events.join(topic, group);
      const member = startMember({ ...options, events, notifier, log, pollMs, leaseMs, topic, group, handler });
      members.add(member);
      return member;
    },
    async replay(topic, group, handler) {
      let count = 0;
      for (let seq = 0, letter; (letter = await events.deadLetter(topic, group, seq));) {
        ({ seq } = letter);
        try {
          await handler(parseEvent(letter.event));
        } catch (error) {
          if (!(error instanceof RejectedEventError)) throw error;
          log.warn({ error, topic, group, seq }, 'a dead letter was rejected again');
          continue;
        }
        await events.discard(seq);
        count++;
      }
      return count;
    },
    async removeExpired(nowMs, signal) {
      const letters = await removeAll(signal, (limit) =>
        events.removeDeadLetters(isoTime(nowMs - deadLetterRetentionMs), limit),
      );
      if (letters > 0) log.warn({ letters }, 'removed dead letters past their retention');
      let count = letters;
      for (const topic of TOPICS)
        count += await removeAll(signal, (limit) => events.removeEvents(topic, nowMs - RETENTION_MS[topic], limit));
      const bytesAbove = cutBackLog(connection.db, file) - LOG_LIMIT_BYTES;
      if (bytesAbove > 0) log.warn({ bytesAbove }, 'another process reads an old state of the event file');
      return count;
    },
    backlog: (topic, group) => events.backlog(topic, group, MOST_DEAD_LETTERS),
    async check() {
      await connection.read(() => connection.db.prepare('PRAGMA schema_version').get());
    },
    async close() {
      await Promise.all([...members].map((member) => member.stop()));
      connection.db.close();
    },
  };
}

/** Rows: dead letters, or blocks of at most some hundred events each. */
const REMOVE_BATCH = 200;

/** Removes in batches, between which this process and others do their work. Resolves to the number removed. */
async function removeAll(signal: AbortSignal, removeBatch: (limit: number) => Promise<number>): Promise<number> {
  let count = 0;
  for (let removed = 1; removed > 0 && !signal.aborted; count += removed) {
    removed = await removeBatch(REMOVE_BATCH);
    await nextTurn();
  }
  return count;
}
