import { Client, type ChannelOptions } from '@grpc/grpc-js';
import type { Identity } from './identity.ts';
import { ClientTlsCredentials } from './tls-credentials.ts';

export const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.enable_retries': 0,
  // Keeps no message for retries. Else grpc-js calls a message written before it is, and no stream has backpressure.
  'grpc.per_rpc_retry_buffer_size': 0,
  'grpc.enable_channelz': 0,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // Enough for a page of 100 memory objects of the largest allowed size, escaped as JSON.
  'grpc.max_receive_message_length': 64 << 20,
  // All replies of a replica come by one stream: HTTP/2's own 64 KiB would be one round trip for each piece of a reply.
  'grpc-node.flow_control_window': 4 << 20,
};

export interface Target {
  /** Name of the called process: calls go to no other. */
  audience: string;
  identity: Identity;
}

export interface Dialer {
  /** Opens a client with the certificate that this process has now. */
  clientTo(address: string, options?: ChannelOptions): Client;
  /** Calls `notify` when this process has a new certificate. @returns what ends that */
  onRenewed(notify: () => void): () => void;
}

export const makeDialer = ({ audience, identity }: Target): Dialer => ({
  clientTo: (address, options) =>
    new Client(address, new ClientTlsCredentials(identity.context(), audience), {
      ...CHANNEL_OPTIONS,
      ...options,
      // The name in place of the address in TLS' server name indication, which may not be an address (RFC 6066).
      'grpc.ssl_target_name_override': audience,
    }),
  onRenewed: (notify) => identity.onRenewed(notify),
});
