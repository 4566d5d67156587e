import { Client, type ChannelOptions } from '@grpc/grpc-js';
import type { Identity, TlsContext } from './identity.ts';
import { ClientTlsCredentials } from './tls-credentials.ts';

const OPTIONS: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // Enough for a page of 100 memory objects of the largest allowed size, escaped as JSON.
  'grpc.max_receive_message_length': 64 << 20,
};
/**
 * Calls go to the replicas in turn. A single address keeps the default load balancing, with which the call that finds
 * the connection lost opens a new one.
 */
const REPLICAS_OPTIONS: ChannelOptions = {
  ...OPTIONS,
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
};

/** Where calls go. */
export interface ChannelTarget {
  /** host:port; several replicas comma-separated */
  address: string;
  /** Name of the called process: calls go to no other. */
  audience: string;
  identity: Identity;
}

export interface Channel {
  /** The client for one call, which calls `done` when it has its outcome. */
  take(): { client: Client; done(): void };
  close(): void;
}

/** Opens connections to one service, and new ones when the certificate of this process is renewed. */
export function openChannel({ address, audience, identity }: ChannelTarget): Channel {
  const open = (context: TlsContext) => ({ client: clientTo(address, audience, context), running: 0, replaced: false });
  let current = open(identity.context());
  const closeWhenUnused = ({ client, running, replaced }: typeof current): void => {
    if (replaced && running === 0) client.close();
  };
  const stopRenewal = identity.onRenewed((context) => {
    const before = current;
    current = open(context);
    before.replaced = true;
    closeWhenUnused(before);
  });
  return {
    take() {
      const taken = current;
      taken.running += 1;
      return {
        client: taken.client,
        done() {
          taken.running -= 1;
          closeWhenUnused(taken);
        },
      };
    },
    close() {
      stopRenewal();
      current.client.close();
    },
  };
}

function clientTo(address: string, audience: string, context: TlsContext): Client {
  const hasReplicas = address.includes(',');
  return new Client(hasReplicas ? `ipv4:${address}` : address, new ClientTlsCredentials(context, audience), {
    ...(hasReplicas ? REPLICAS_OPTIONS : OPTIONS),
    // The name in place of the address in TLS' server name indication, which may not be an address (RFC 6066).
    'grpc.ssl_target_name_override': audience,
  });
}
