import { makeLog } from '../../core/log.ts';
import { Notifier } from '../../core/notifier.ts';
import { parseEvent, RejectedEventError, type EventBus, type Subscription } from '../bus.ts';
import { openSharedFile } from './connection.ts';
import { eventLog, SCHEMA } from './event-log.ts';
import { startMember } from './subscription.ts';

/**
 * The event bus in one SQLite file that the processes of one machine share. A topic has one partition, so one member of
 * a group consumes it at a time; another member replaces one that died after `leaseMs`. Events that other processes
 * publish are noticed within `pollMs`.
 * @throws StartError when the file cannot be opened
 */
export async function openSqliteBus(
  file: string,
  { pollMs = 100, leaseMs = 10_000, log = makeLog('events', 'warn') } = {},
): Promise<EventBus> {
  const connection = await openSharedFile(file, SCHEMA);
  const events = eventLog(connection);
  const notifier = new Notifier();
  const members = new Set<Subscription>();
  return {
    async publish(topic, published) {
      await events.append(topic, published, Date.now());
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
    async close() {
      await Promise.all([...members].map((member) => member.stop()));
      connection.db.close();
    },
  };
}
