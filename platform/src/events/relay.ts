import type { Job } from '../jobs/jobs.ts';
import type { Log } from '../core/log.ts';
import { remove, type PlatformStore } from '../store/store.ts';
import { EventsTooLargeError, TOPICS, type CloudEvent, type EventBus, type Topic } from './bus.ts';
import { OUTBOX } from './outbox.ts';

const BATCH = 200;

interface RelayDeps {
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'publish'>;
  intervalMs: number;
  log: Log;
}

/**
 * Publishes the outbox, oldest first within a topic, and removes what the bus has accepted; a round ends when the outbox is empty.
 * A topic that the bus refuses keeps its rows; the others still go out, then the round rejects with the first refusal. An event
 * that the bus finds too large stays, too, but fails no round: a job that fails waits, and would hold up the others.
 */
export function relayJob(deps: RelayDeps): Job {
  const left = new Map<Topic, ReadonlySet<string>>();
  return {
    name: 'relay',
    description: 'Publishes the events that wait in the outbox.',
    intervalMs: deps.intervalMs,
    async run(signal) {
      const rounds = await Promise.allSettled(TOPICS.map((topic) => drain(deps, topic, left, signal)));
      let count = 0;
      for (const round of rounds) {
        if (round.status === 'rejected') throw round.reason;
        count += round.value;
      }
      return count;
    },
  };
}

/** @param left those found too large in the round before: each is logged once by a process */
async function drain(
  { platformStore, bus, log }: RelayDeps,
  topic: Topic,
  left: Map<Topic, ReadonlySet<string>>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  const tooLarge = new Set<string>();
  /** Up to this one, rows that are left are too large. */
  let passed = '';
  while (!signal.aborted) {
    const rows = await platformStore.find(
      OUTBOX,
      { topic, ...(passed !== '' && { _id: { gt: passed } }) },
      { limit: BATCH },
    );
    if (rows.length === 0) break;
    let taken = rows;
    try {
      await bus.publish(
        topic,
        rows.map((row) => JSON.parse(row.event) as CloudEvent),
      );
    } catch (error) {
      if (!(error instanceof EventsTooLargeError)) throw error;
      for (const id of error.ids) tooLarge.add(id);
      const unheard = error.ids.filter((id) => !left.get(topic)?.has(id));
      if (unheard.length > 0)
        log.error({ error, topic, events: unheard }, 'events that are too large stay in the outbox');
      taken = rows.filter(({ _id }) => !error.ids.includes(_id));
      passed = rows.at(-1)!._id;
    }
    // A relay that lost its lease may have removed some of them already.
    await platformStore.apply(taken.map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
    count += taken.length;
  }
  if (!signal.aborted) left.set(topic, tooLarge);
  return count;
}
