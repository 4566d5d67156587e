import type { EventBus } from 'platform/events/bus.ts';
import { gauge, reading, type Metrics } from 'platform/telemetry/metrics.ts';
import { AUDIT_GROUP } from './consume-audit.ts';

const LAG = gauge(
  'agentmemory_consumer_lag_events',
  'Events that the consumer group has not handled yet. All replicas tell the same.',
  ['topic', 'group'],
);
const DEAD_LETTERS = gauge(
  'agentmemory_dead_letters',
  'Events that the consumer group could not handle, of which at most 10,000 are counted. All replicas tell the same.',
  ['topic', 'group'],
);
export const CONSUMER_METRICS = [LAG, DEAD_LETTERS] as const;

export function readConsumer(metrics: Metrics, bus: Pick<EventBus, 'backlog'>): void {
  const labels = { topic: 'audit.v1', group: AUDIT_GROUP } as const;
  metrics.read(async () => {
    const { events, deadLetters } = await bus.backlog(labels.topic, labels.group);
    return [reading(LAG, labels, events), reading(DEAD_LETTERS, labels, deadLetters)];
  });
}
