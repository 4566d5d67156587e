import { createRequire } from 'node:module';
import { letIdleConnectionsSleep } from 'platform/events/kafka/idle-connections.ts';

interface Queue {
  pending: unknown[];
  /** Milliseconds since the epoch. */
  throttledUntil: number;
  throttleCheckTimeoutId: unknown;
  fulfillRequest(answer: { correlationId: number }): void;
  push(request: object): void;
  destroy(): void;
}
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (o: object) => Queue;
const nothing = (): void => undefined;

function openQueue(): Queue {
  const logger = { debug: nothing, warn: nothing };
  return new RequestQueue({ maxInFlightRequests: 1, requestTimeout: 1_000, isConnected: () => true, logger });
}

beforeAll(letIdleConnectionsSleep);

it('a connection of kafkajs on which no request waits has no timer after an answer', () => {
  const queue = openQueue();
  queue.fulfillRequest({ correlationId: 1 });
  expect(queue.throttleCheckTimeoutId).toBeNull();
});

it('a request that has to wait is sent when its broker takes requests again', async () => {
  const queue = openQueue();
  queue.throttledUntil = Date.now() + 20;
  const sentAt = await new Promise<number>((resolve) => {
    const entry = { correlationId: 2, apiName: 'Fetch', apiKey: 1, apiVersion: 1, resolve: nothing, reject: nothing };
    queue.push({ entry, expectResponse: true, sendRequest: () => resolve(Date.now()) });
    expect(queue.pending).toHaveLength(1);
  });
  queue.destroy();
  expect(sentAt).toBeGreaterThanOrEqual(queue.throttledUntil);
});
