import type { Job } from '../jobs.ts';
import { remove, type PlatformStore } from '../store/store.ts';
import { TOPICS, type CloudEvent, type EventBus, type Topic } from './bus.ts';
import { OUTBOX } from './outbox.ts';

const BATCH = 200;

interface RelayDeps {
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'publish'>;
  intervalMs: number;
}

/**
 * Publishes the outbox, oldest first within a topic, and removes what the bus has accepted; a round ends when the outbox is empty.
 * A topic that the bus refuses keeps its rows, the others still go out, then the round rejects with the first refusal.
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
  while (!signal.aborted) {
    const rows = await platformStore.find(OUTBOX, { topic }, { limit: BATCH });
    if (rows.length === 0) break;
    await bus.publish(topic, rows.map((row) => JSON.parse(row.event) as CloudEvent));
    // A relay that lost its lease may have removed some of them already.
    await platformStore.apply(rows.map(({ _id }) => remove(OUTBOX, { _id }, { optional: true })));
    count += rows.length;
  }
  return count;
}
