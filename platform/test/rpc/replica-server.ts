import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { CallsServiceService } from 'proto/platform/v1/calls.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { makeCarrier, type HandleCarried } from 'platform/rpc/call-carrier.ts';
import { CHANNEL_OPTIONS, type Dialer } from 'platform/rpc/dialer.ts';
import type { OutgoingCall } from 'platform/rpc/outgoing-call.ts';
import { openReplicas } from 'platform/rpc/replicas.ts';
import type { Peer } from 'platform/rpc/identity.ts';
import type { Transport } from 'platform/rpc/unary.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';

export const textOf = (reply: Uint8Array): string => Buffer.from(reply).toString();

export const PEER: Peer = { name: 'gateway', check: async () => undefined };

/** One replica of a service that has no methods: every call goes to `handle`. */
export async function startReplica(handle: HandleCarried, port = 0, host = '127.0.0.1') {
  const carrier = makeCarrier(handle, () => PEER);
  const server = new Server();
  server.addService(CallsServiceService, { carry: carrier.carry });
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, at) =>
      error ? reject(error) : resolve(at),
    ),
  );
  const kill = closedInTheEnd(async () => server.forceShutdown());
  return {
    port: bound,
    address: `${host}:${bound}`,
    kill,
    drain: () => {
      void carrier.goAway();
      return new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    },
  };
}
/** Connections without TLS. */
export const connect = (...addresses: string[]) => connectByNames(addresses);

/** @param names of `openReplicas` */
export function connectByNames(
  addresses: readonly string[],
  names?: Parameters<typeof openReplicas>[2],
): Transport & { renewCertificate(): void } {
  let renewCertificate = (): void => undefined;
  const dialer: Dialer = {
    clientTo: (address, options) =>
      new Client(address, credentials.createInsecure(), {
        ...CHANNEL_OPTIONS,
        'grpc.max_reconnect_backoff_ms': 200,
        ...options,
      }),
    onRenewed(notify) {
      renewCertificate = notify;
      return () => undefined;
    },
  };
  const replicas = openReplicas(addresses, dialer, names);
  closedInTheEnd(async () => replicas.close());
  return { ...replicas, renewCertificate: () => renewCertificate() };
}

export const callOf = (method: string, given: Partial<OutgoingCall> = {}): OutgoingCall => ({
  method,
  request: Buffer.alloc(0),
  organizationId: 'A',
  principal: Buffer.alloc(0),
  requestId: 'r1',
  traceparent: '',
  maxReplyBytes: 0,
  deadline: Date.now() + 60_000,
  repeatable: true,
  ...given,
});

/** The text of the reply, or the reason of the error. */
export const outcome = (call: Promise<Uint8Array>): Promise<unknown> =>
  call.then(textOf, (error: unknown) => (error instanceof ServiceError ? error.reason : error));

export const hanging: HandleCarried = () => new Promise(() => undefined);
