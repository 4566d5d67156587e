import { parseTraceparent } from '../telemetry/traceparent.ts';
import { endWith, inScope, isTracing, openSpan, type Attributes, type SpanKind } from '../telemetry/traces.ts';
import { tracedOf, type CloudEvent, type EventBus, type EventHandler, type Topic } from './bus.ts';

const PROCESSING = { kind: 'consumer', operation: 'process' } as const;

/**
 * The bus, with spans for the events of traced requests: each in the trace of the request that made the change. What
 * is done for several events at once is in the trace of the first of them.
 */
export function tracedBus(bus: EventBus, system: 'sqlite' | 'kafka'): EventBus {
  if (!isTracing()) return bus;

  /** @param given.events those that may be of traced requests, of `count` in all */
  async function traced<T>(
    given: {
      kind: SpanKind;
      operation: string;
      topic: Topic;
      group?: string;
      events: readonly CloudEvent[];
      count: number;
    },
    work: () => Promise<T>,
  ): Promise<T> {
    const { kind, operation, topic, group, events, count } = given;
    const spans = events.flatMap(({ id, traceparent }) => {
      const parent = typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined;
      const attributes: Attributes = {
        'messaging.system': system,
        'messaging.operation.name': operation,
        'messaging.operation.type': operation,
        'messaging.destination.name': topic,
        'messaging.consumer.group.name': group,
        'messaging.message.id': id,
        'messaging.batch.message_count': count > 1 ? count : undefined,
      };
      return (parent && openSpan(kind, `${operation} ${topic}`, attributes, parent)) ?? [];
    });
    const [first] = spans;
    return first ? endWith(spans, inScope(first.scope, work)) : work();
  }

  const handling =
    (topic: Topic, group: string, handler: EventHandler): EventHandler =>
    (event) =>
      traced({ ...PROCESSING, topic, group, events: [event], count: 1 }, () => handler(event));

  return {
    ...bus,
    publish: (topic, events) =>
      traced({ kind: 'producer', operation: 'send', topic, events: tracedOf(events), count: events.length }, () =>
        bus.publish(topic, events),
      ),
    subscribe(topic, group, handler, { handleTogether, ...options }) {
      const together =
        handleTogether &&
        ((events: readonly CloudEvent[]) =>
          traced({ ...PROCESSING, topic, group, events, count: events.length }, () => handleTogether(events)));
      return bus.subscribe(topic, group, handling(topic, group, handler), {
        ...options,
        ...(together && { handleTogether: together }),
      });
    },
    replay: (topic, group, handler) => bus.replay(topic, group, handling(topic, group, handler)),
  };
}
