import type { Job } from '../jobs/jobs.ts';
import type { Log } from '../core/log.ts';
import { remove, type PlatformStore } from '../store/store.ts';
import { EventsTooLargeError, TOPICS, type CloudEvent, type EventBus, type Topic } from './bus.ts';
import { OUTBOX } from './outbox.ts';

const BATCH = 200;

interface Needs {
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'publish'>;
  intervalMs: number;
  log: Log;
}

/**
 * Publishes the events of the outbox, the oldest of a topic first, and removes what the bus has accepted. A round ends
 * when the outbox is empty. If publishing to a topic fails, its events stay, those of the other topics are published,
 * and then the round rejects with the first error. An event that the bus rejects as too large stays, too, but the round
 * succeeds: the back-off of a failed job would delay all other events.
 */
export function relayJob(deps: Needs): Job {
  const knownTooLarge = new Map<Topic, ReadonlySet<string>>();
  return {
    name: 'relay',
    description: 'Publishes the events that wait in the outbox.',
    intervalMs: deps.intervalMs,
    async run(signal) {
      const rounds = await Promise.allSettled(TOPICS.map((topic) => publishTopic(deps, topic, knownTooLarge, signal)));
      let count = 0;
      for (const round of rounds) {
        if (round.status === 'rejected') throw round.reason;
        count += round.value;
      }
      return count;
    },
  };
}

/** @param knownTooLarge ids of the events that were too large in the previous round, so that each is logged once */
async function publishTopic(
  { platformStore, bus, log }: Needs,
  topic: Topic,
  knownTooLarge: Map<Topic, ReadonlySet<string>>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  const tooLarge = new Set<string>();
  /** All events up to this id that are still in the outbox are too large. */
  let lastSeen = '';
  while (!signal.aborted) {
    const rows = await platformStore.find(
      OUTBOX,
      { topic, ...(lastSeen !== '' && { _id: { gt: lastSeen } }) },
      { limit: BATCH },
    );
    if (rows.length === 0) break;
    let accepted = rows;
    try {
      await bus.publish(
        topic,
        rows.map((row) => JSON.parse(row.event) as CloudEvent),
      );
    } catch (error) {
      if (!(error instanceof EventsTooLargeError)) throw error;
      for (const id of error.ids) tooLarge.add(id);
      const unlogged = error.ids.filter((id) => !knownTooLarge.get(topic)?.has(id));
      if (unlogged.length > 0)
        log.error({ error, topic, events: unlogged }, 'events that are too large stay in the outbox');
      accepted = rows.filter(({ _id }) => !error.ids.includes(_id));
      lastSeen = rows.at(-1)!._id;
    }
    // Another relay may have removed some of them already, if this one lost its lease.
    await platformStore.apply(accepted.map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
    count += accepted.length;
  }
  if (!signal.aborted) knownTooLarge.set(topic, tooLarge);
  return count;
}
