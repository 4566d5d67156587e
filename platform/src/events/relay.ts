import { parseJson } from '../core/parse-json.ts';
import type { Job } from '../jobs/jobs.ts';
import type { Log } from '../core/log.ts';
import { remove, type PlatformStore } from '../store/store.ts';
import { EventsTooLargeError, TOPICS, type CloudEvent, type EventBus, type Topic } from './bus.ts';
import { OUTBOX, type OutboxRecord } from './outbox.ts';

const BATCH = 500;
/** Under load a round publishes what came within this time: few commits for many events. */
export const RELAY_PACE_MS = 50;

interface Needs {
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'publish'>;
  intervalMs: number;
  log: Log;
}

/**
 * Publishes the events of the outbox, the oldest first, and removes what the bus has accepted: one batch of all topics
 * and organizations after the other, until the outbox is empty. If publishing to a topic fails, its events stay, those
 * of the other topics are published, and then the round rejects with the first error. An event that the bus rejects as
 * too large stays, too, but the round succeeds: the back-off of a failed job would delay all other events.
 */
export function relayJob({ platformStore, bus, intervalMs, log }: Needs): Job {
  /** Ids of the outbox rows that were too large in the previous round, so that each is logged once. */
  let knownTooLarge: ReadonlySet<string> = new Set();

  return {
    name: 'relay',
    description: 'Publishes the events that wait in the outbox.',
    intervalMs,
    paceMs: RELAY_PACE_MS,
    async run(signal) {
      const failed = new Map<Topic, unknown>();
      const tooLarge = new Set<string>();
      let count = 0;
      /** Those up to this id that are still in the outbox are too large, or of a topic that failed. */
      let lastSeen = '';

      /** Resolves to the events that the bus has accepted. */
      async function publish(topic: Topic, rows: readonly OutboxRecord[]): Promise<readonly OutboxRecord[]> {
        const texts = rows.map(({ _id: id, organizationId, event: text }) => ({
          id,
          partitionKey: organizationId,
          text,
        }));
        try {
          await bus.publish(topic, texts);
          return rows;
        } catch (error) {
          if (!(error instanceof EventsTooLargeError)) {
            failed.set(topic, error);
            return [];
          }
          for (const id of error.ids) tooLarge.add(id);
          const refused = rows.filter(({ _id }) => error.ids.includes(_id));
          // An outbox row of SQLite has an id of its own (ADR 27).
          const unlogged = refused
            .filter(({ _id }) => !knownTooLarge.has(_id))
            .map(({ event }) => (parseJson(event) as CloudEvent).id);
          if (unlogged.length > 0)
            log.error({ error, topic, events: unlogged }, 'events that are too large stay in the outbox');
          return rows.filter((row) => !refused.includes(row));
        }
      }

      for (let found = BATCH; found === BATCH && failed.size < TOPICS.length && !signal.aborted;) {
        const rows = await platformStore.find(
          OUTBOX,
          {
            ...(failed.size > 0 && { topic: { in: TOPICS.filter((topic) => !failed.has(topic)) } }),
            ...(lastSeen !== '' && { _id: { gt: lastSeen } }),
          },
          { limit: BATCH },
        );
        found = rows.length;
        const byTopic = [...Map.groupBy(rows, ({ topic }) => topic)];
        const accepted = (await Promise.all(byTopic.map(([topic, ofTopic]) => publish(topic, ofTopic)))).flat();
        if (accepted.length < rows.length) lastSeen = rows.at(-1)!._id;
        // Another relay may have removed some of them already, if this one lost its lease.
        await platformStore.apply(accepted.map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
        count += accepted.length;
      }
      if (!signal.aborted) knownTooLarge = tooLarge;
      for (const error of failed.values()) throw error;
      return count;
    },
  };
}
