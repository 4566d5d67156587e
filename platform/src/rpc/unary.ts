import { Metadata, type Client, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { ServiceError } from '../core/errors.ts';
import { MAX_REPLY_BYTES, PRINCIPAL, REQUEST_ID, TRACEPARENT } from './call.ts';
import type { Dialer } from './dialer.ts';
import { NeverSentError, type OutgoingCall } from './outgoing-call.ts';
import { fromGrpcError, neverSent } from './wire-errors.ts';

/** Sends calls to one service. Rejects with ServiceError. */
export interface Transport {
  /** @returns the serialized reply */
  call(call: OutgoingCall): Promise<Uint8Array>;
  /**
   * The serialized replies of a server-streaming method. The call begins when the first one is asked for; to leave the
   * loop cancels it.
   */
  replies(call: OutgoingCall): AsyncIterable<Uint8Array>;
  /** Streams that are open, and calls on them that are not answered yet; undefined where calls have no streams. */
  load?(): { streams: number; calls: number };
  /** Takes no further calls; those that are open are answered. */
  close(): void;
}

/** Each call is a gRPC call of its own: for a process that makes few calls, such as a command. */
export function openUnary(addresses: readonly string[], { clientTo, onRenewed }: Dialer): Transport {
  const [first, ...others] = addresses;
  // With a single address, the call that finds the connection lost opens a new one.
  const open = (): Client =>
    others.length === 0
      ? clientTo(first!)
      : clientTo(`ipv4:${addresses.join(',')}`, {
          'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
        });
  let client = open();
  const stopRenewal = onRenewed(() => {
    // its open calls are answered
    client.close();
    client = open();
  });
  const unavailable = (error: unknown): never => {
    throw error instanceof NeverSentError ? new ServiceError('UNAVAILABLE', undefined, { cause: error }) : error;
  };
  return {
    call: (call) => callUnary(client, call).catch(unavailable),
    async *replies(call) {
      try {
        yield* callServerStreaming(client, call);
      } catch (error) {
        unavailable(error);
      }
    },
    close() {
      stopRenewal();
      client.close();
    },
  };
}

const asItIs = (bytes: Buffer): Buffer => bytes;

function metadataOf({ principal, requestId, maxReplyBytes, traceparent }: OutgoingCall): Metadata {
  const metadata = new Metadata();
  metadata.set(PRINCIPAL, principal);
  metadata.set(REQUEST_ID, requestId);
  if (traceparent !== '') metadata.set(TRACEPARENT, traceparent);
  if (maxReplyBytes > 0) metadata.set(MAX_REPLY_BYTES, String(maxReplyBytes));
  return metadata;
}

const errorOf = (error: GrpcError, { repeatable }: OutgoingCall): Error =>
  neverSent(error) ? new NeverSentError(undefined, { cause: error }) : fromGrpcError(error, repeatable);

/** grpc-js throws where the client was closed in this turn. @throws NeverSentError */
function begun<T>(begin: () => T): T {
  try {
    return begin();
  } catch (error) {
    throw new NeverSentError(undefined, { cause: error });
  }
}

/** Makes one gRPC call. @returns the serialized reply. @throws ServiceError, NeverSentError */
export function callUnary(client: Client, call: OutgoingCall): Promise<Uint8Array> {
  const { method, request, signal, deadline } = call;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
    const cancel = () => grpc.cancel();
    const onEnd = (error: GrpcError | null, reply?: Buffer): void => {
      signal?.removeEventListener('abort', cancel);
      if (error) reject(errorOf(error, call));
      else resolve(reply!);
    };
    const grpc = begun(() =>
      client.makeUnaryRequest(method, asItIs, asItIs, request, metadataOf(call), { deadline }, onEnd),
    );
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

/** Makes one gRPC call with several replies, each serialized. @throws ServiceError, NeverSentError */
export async function* callServerStreaming(client: Client, call: OutgoingCall): AsyncGenerator<Uint8Array> {
  const { method, request, signal, deadline } = call;
  if (signal?.aborted) throw new ServiceError('CLIENT_GONE');
  const grpc = begun(() =>
    client.makeServerStreamRequest(method, asItIs, asItIs, request, metadataOf(call), { deadline }),
  );
  const cancel = () => grpc.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  // The error that follows when the loop below is left early
  grpc.on('error', () => undefined);
  try {
    for await (const reply of grpc) yield reply as Buffer;
  } catch (error) {
    throw errorOf(error as GrpcError, call);
  } finally {
    signal?.removeEventListener('abort', cancel);
    cancel();
  }
}
