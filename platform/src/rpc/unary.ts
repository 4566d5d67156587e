import { Metadata, type Client, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { ServiceError } from '../core/errors.ts';
import { MAX_REPLY_BYTES, PRINCIPAL, REQUEST_ID } from './call.ts';
import type { OutgoingCall } from './call-stream.ts';
import type { Dialer } from './dialer.ts';
import { fromGrpcError } from './wire-errors.ts';

/** Sends calls to one service. Rejects with ServiceError. */
export interface Transport {
  /** @returns the serialized reply */
  call(call: OutgoingCall): Promise<Uint8Array>;
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
  return {
    call: (call) => callUnary(client, call),
    close() {
      stopRenewal();
      client.close();
    },
  };
}

/** Makes one gRPC call. @returns the serialized reply. @throws ServiceError */
export function callUnary(client: Client, call: OutgoingCall): Promise<Uint8Array> {
  const { method, request, principal, requestId, maxReplyBytes, signal, deadline, repeatable } = call;
  const metadata = new Metadata();
  metadata.set(PRINCIPAL, principal);
  metadata.set(REQUEST_ID, requestId);
  if (maxReplyBytes > 0) metadata.set(MAX_REPLY_BYTES, String(maxReplyBytes));
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new ServiceError('CLIENT_GONE'));
    const cancel = () => grpc.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    const grpc = client.makeUnaryRequest(
      method,
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      request,
      metadata,
      { deadline },
      (error: GrpcError | null, reply?: Buffer) => {
        signal?.removeEventListener('abort', cancel);
        if (error) reject(fromGrpcError(error, repeatable));
        else resolve(reply!);
      },
    );
  });
}
