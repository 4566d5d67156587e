import { once } from 'node:events';
import { connect } from 'node:net';
import type { GatewayFixture } from './fixture.ts';

/** The request of a run, for the fixture's `request`. */
export const RUN = { method: 'POST', body: { agentName: 'a', args: null } };
const RESPONSE = {
  success: true,
  sessionId: 'api-1',
  agentExecutionId: 'e',
  agent: 'a',
  output: '1',
  messages: [],
  idempotencyReplayed: undefined,
  creditsCharged: '1',
};

/** A run that ends when `go` is called. `begun` resolves when it starts, `ended` says how it ended. */
export function slowRun() {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<'done' | 'cancelled'>();
  const runAgent = async (_request: unknown, { signal }: { signal: AbortSignal }) => {
    begun.resolve();
    signal.addEventListener('abort', () => ended.resolve('cancelled'));
    await go.promise;
    ended.resolve('done');
    return RESPONSE;
  };
  return { begun: begun.promise, go: go.resolve, ended: ended.promise, stubs: { agents: { runAgent } } };
}

/**
 * Sends the request of a run, and resolves when the run has begun.
 * @returns disconnects the client
 */
export async function beginRun(
  fixture: GatewayFixture,
  { begun }: { begun: Promise<void> },
  headers: Record<string, string> = {},
): Promise<() => Promise<void>> {
  const aborter = new AbortController();
  const request = fixture.request('/api/agent/run', { ...RUN, headers, signal: aborter.signal });
  await begun;
  return async () => {
    aborter.abort();
    await expect(request).rejects.toThrow();
  };
}

/** Resolves when everything sent to a service before has arrived there, such as a cancellation. */
export async function untilArrived({ address }: { address: string }): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const socket = connect(Number(address.slice(address.lastIndexOf(':') + 1)), '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    await once(socket, 'close');
  }
}
