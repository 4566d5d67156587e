import { parseTraceparent } from '../telemetry/traceparent.ts';
import { endWith, inScope, isTracing, openSpan, type Attributes, type SpanKind } from '../telemetry/traces.ts';
import type { CloudEvent, EventBus, EventHandler, Topic } from './bus.ts';

/**
 * The bus, with spans for the events of traced requests: each in the trace of the request that made the change. What
 * is done for several events at once is in the trace of the first of them.
 */
export function tracedBus(bus: EventBus, system: 'sqlite' | 'kafka'): EventBus {
  if (!isTracing()) return bus;

  async function traced<T>(
    kind: SpanKind,
    operation: string,
    topic: Topic,
    group: string | undefined,
    events: readonly CloudEvent[],
    work: () => Promise<T>,
  ): Promise<T> {
    const spans = events.flatMap(({ id, traceparent }) => {
      const parent = typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined;
      const attributes: Attributes = {
        'messaging.system': system,
        'messaging.operation.name': operation,
        'messaging.operation.type': operation,
        'messaging.destination.name': topic,
        'messaging.consumer.group.name': group,
        'messaging.message.id': id,
        'messaging.batch.message_count': events.length > 1 ? events.length : undefined,
      };
      return (parent && openSpan(kind, `${operation} ${topic}`, attributes, parent)) ?? [];
    });
    const [first] = spans;
    return first ? endWith(spans, inScope(first.scope, work)) : work();
  }

  const handling =
    (topic: Topic, group: string, handler: EventHandler): EventHandler =>
    (event) =>
      traced('consumer', 'process', topic, group, [event], () => handler(event));

  return {
    ...bus,
    publish: (topic, events) => traced('producer', 'send', topic, undefined, events, () => bus.publish(topic, events)),
    subscribe(topic, group, handler, { handleTogether, ...options }) {
      const together =
        handleTogether &&
        ((events: readonly CloudEvent[]) =>
          traced('consumer', 'process', topic, group, events, () => handleTogether(events)));
      return bus.subscribe(topic, group, handling(topic, group, handler), {
        ...options,
        ...(together && { handleTogether: together }),
      });
    },
    replay: (topic, group, handler) => bus.replay(topic, group, handling(topic, group, handler)),
  };
}
