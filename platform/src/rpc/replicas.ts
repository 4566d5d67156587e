import type { Client } from '@grpc/grpc-js';
import { ServiceError } from '../core/errors.ts';
import type { Dialer } from './dialer.ts';
import { openCallStream, type CallStream } from './call-stream.ts';
import { NeverSentError } from './outgoing-call.ts';
import { allAddresses, isNumeric } from './replica-addresses.ts';
import { callServerStreaming, callUnary, type Transport } from './unary.ts';

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 1_000;
/** A stream is replaced after this time by one on a new connection: replicas behind a load balancer get their share. */
const MAX_AGE_MS = 5 * 60_000;
/** How often the names of replicas are resolved. */
const RESOLVE_MS = 30_000;
/** A larger request is a gRPC call of its own, so that others do not wait for it. */
const MAX_FRAME_BYTES = 65_536;

interface Replica {
  address: string;
  client: Client;
  stream: CallStream | undefined;
  delayMs: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Opens a stream to each replica of a service. A call goes by the stream with the fewest open calls.
 * @param addresses of replicas, each host:port; a host name stands for all its addresses
 */
export function openReplicas(addresses: readonly string[], { clientTo, onRenewed }: Dialer): Transport {
  const replicas = new Map<string, Replica>();
  // Clients with the same options would share a connection.
  const makeClient = (address: string): Client => clientTo(address, { 'grpc.use_local_subchannel_pool': 1 });
  const stopRenewal = onRenewed(() => [...replicas.values()].forEach(renew));
  let closed = false;
  let turn = 0;

  function add(address: string): void {
    const client = makeClient(address);
    const replica: Replica = { address, client, stream: undefined, delayMs: FIRST_DELAY_MS, timer: undefined };
    replicas.set(address, replica);
    open(replica);
  }

  function remove(replica: Replica): void {
    replicas.delete(replica.address);
    clearTimeout(replica.timer);
    if (!replica.stream || replica.stream.state === 'closed') replica.client.close();
    else replica.stream.retire();
  }

  /** Opens a stream. When it ends, another one is opened, after a delay if it never was open. */
  function open(replica: Replica): void {
    clearTimeout(replica.timer);
    const { client } = replica;
    replica.stream = openCallStream(client, (stream) => {
      const isCurrent = replica.stream === stream && replicas.get(replica.address) === replica && !closed;
      if (stream.state === 'open' && isCurrent) {
        replica.delayMs = FIRST_DELAY_MS;
        replica.timer = setTimeout(() => renew(replica), MAX_AGE_MS * (0.9 + Math.random() / 5)).unref();
      } else if (stream.state === 'retiring' && isCurrent) renew(replica);
      else if (stream.state === 'closed') {
        if (replica.client !== client) client.close();
        else if (isCurrent) reopen(replica);
      }
    });
  }

  function reopen(replica: Replica): void {
    clearTimeout(replica.timer);
    replica.timer = setTimeout(() => open(replica), replica.delayMs * (0.5 + Math.random() / 2)).unref();
    replica.delayMs = Math.min(2 * replica.delayMs, MAX_DELAY_MS);
  }

  /** Replaces the stream by one on a new connection; the old one answers what it has. */
  function renew(replica: Replica): void {
    const { stream } = replica;
    replica.client = makeClient(replica.address);
    open(replica);
    stream?.retire();
  }

  /** The one with the fewest calls on its open stream; otherwise one whose stream is being opened. */
  function choose(): Replica | undefined {
    let best: Replica | undefined;
    const all = [...replicas.values()];
    for (let i = 0; i < all.length; i++) {
      const replica = all[(turn + i) % all.length]!;
      const { stream } = replica;
      if (stream?.state === 'open' && (best?.stream?.state !== 'open' || stream.load < best.stream.load))
        best = replica;
      else if (stream?.state === 'connecting' && !best) best = replica;
    }
    turn++;
    if (best) return best;
    for (const replica of all) if (replica.stream?.state === 'closed') open(replica);
    return all[turn % all.length];
  }

  async function resolve(): Promise<void> {
    const found = await Promise.all(addresses.map((address) => allAddresses(address)));
    if (closed || found.includes(undefined)) return;
    const wanted = new Set(found.flat() as string[]);
    for (const address of wanted) if (!replicas.has(address)) add(address);
    for (const replica of [...replicas.values()]) if (!wanted.has(replica.address)) remove(replica);
  }
  for (const address of addresses) add(address);
  const resolving = addresses.every(isNumeric) ? undefined : setInterval(() => void resolve(), RESOLVE_MS).unref();
  if (resolving) void resolve();

  /** @throws what the caller gets, unless another replica may be tried */
  function requireAnother(error: unknown, attempt: number): void {
    if (!(error instanceof NeverSentError)) throw error;
    const another = [...replicas.values()].some(({ stream }) => stream && isUsable(stream));
    if (!another || attempt >= replicas.size)
      throw new ServiceError('UNAVAILABLE', undefined, { cause: error.cause ?? error });
  }

  return {
    async call(call) {
      for (let attempt = 0; ; attempt++) {
        try {
          const replica = choose();
          if (!replica?.stream) throw new NeverSentError();
          if (call.request.length > MAX_FRAME_BYTES) return await callUnary(replica.client, call);
          return await replica.stream.call(call);
        } catch (error) {
          requireAnother(error, attempt);
        }
      }
    },
    async *replies(call) {
      for (let attempt = 0; ; attempt++) {
        try {
          const replica = choose();
          if (!replica?.stream) throw new NeverSentError();
          const isLarge = call.request.length > MAX_FRAME_BYTES;
          return yield* isLarge ? callServerStreaming(replica.client, call) : replica.stream.replies(call);
        } catch (error) {
          requireAnother(error, attempt);
        }
      }
    },
    close() {
      closed = true;
      clearInterval(resolving);
      stopRenewal();
      for (const replica of [...replicas.values()]) remove(replica);
    },
  };
}

const isUsable = ({ state }: CallStream): boolean => state === 'open' || state === 'connecting';
