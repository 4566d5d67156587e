import type { Job } from '../jobs.ts';
import { remove, type PlatformStore } from '../store/store.ts';
import { EventsTooLarge, TOPICS, type CloudEvent, type EventBus, type Topic } from './bus.ts';
import { OUTBOX } from './outbox.ts';

const BATCH = 200;

interface RelayDeps {
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'publish'>;
  intervalMs: number;
}

/**
 * Publishes the outbox, oldest first within a topic, and removes what the bus has accepted; a round ends when the outbox is empty.
 * A topic that the bus refuses keeps its rows, and so does an event that it finds too large; the others still go out, then the
 * round rejects with the first refusal.
 */
export const relayJob = ({ platformStore, bus, intervalMs }: RelayDeps): Job => ({
  name: 'relay',
  description: 'Publishes the events that wait in the outbox.',
  intervalMs,
  async run(signal) {
    const rounds = await Promise.allSettled(TOPICS.map((topic) => drain(platformStore, bus, topic, signal)));
    let count = 0;
    for (const round of rounds) {
      if (round.status === 'rejected') throw round.reason;
      count += round.value;
    }
    return count;
  },
});

async function drain(platformStore: PlatformStore, bus: RelayDeps['bus'], topic: Topic, signal: AbortSignal): Promise<number> {
  let count = 0;
  let tooLarge: EventsTooLarge | undefined;
  /** Up to this one, rows that are left are too large. */
  let passed = '';
  while (!signal.aborted) {
    const rows = await platformStore.find(OUTBOX, { topic, ...(passed !== '' && { _id: { gt: passed } }) }, { limit: BATCH });
    if (rows.length === 0) break;
    let taken = rows;
    try {
      await bus.publish(topic, rows.map((row) => JSON.parse(row.event) as CloudEvent));
    } catch (error) {
      if (!(error instanceof EventsTooLarge)) throw error;
      tooLarge = error;
      taken = rows.filter(({ _id }) => !error.ids.includes(_id));
      passed = rows.at(-1)!._id;
    }
    // A relay that lost its lease may have removed some of them already.
    await platformStore.apply(taken.map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
    count += taken.length;
  }
  if (tooLarge) throw tooLarge;
  return count;
}
