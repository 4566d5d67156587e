import type { Client } from '@grpc/grpc-js';
import { ServiceError } from '../core/errors.ts';
import type { Dialer } from './dialer.ts';
import { openCallStream, type CallStream } from './call-stream.ts';
import { NeverSentError } from './outgoing-call.ts';
import { allAddresses, isNumeric, resolveAll, type Resolve } from './replica-addresses.ts';
import { callServerStreaming, callUnary, type Transport } from './unary.ts';

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 1_000;
/** A call that finds no replica has streams opened at once, but not again within this time. */
const AT_ONCE_MS = 40;
/** A stream is replaced after this time by one on a new connection: replicas behind a load balancer get their share. */
const MAX_AGE_MS = 5 * 60_000;
/** How often the names of replicas are resolved. */
export const RESOLVE_MS = 10_000;
/** The same while a replica is not connected: others may have taken its place. */
const RESOLVE_SOON_MS = 1_000;
/** A larger request is a gRPC call of its own, so that others do not wait for it. */
const MAX_FRAME_BYTES = 65_536;

interface Replica {
  address: string;
  client: Client;
  stream: CallStream | undefined;
  delayMs: number;
  timer: NodeJS.Timeout | undefined;
  /** By performance.now(): when its stream was opened. */
  openedMs: number;
}

/**
 * Opens a stream to each replica of a service. A call goes by the stream with the fewest open calls.
 * @param addresses of replicas, each host:port; a host name stands for all its addresses
 * @param names how names are resolved, and how often; given in tests
 */
export function openReplicas(
  addresses: readonly string[],
  { clientTo, onRenewed }: Dialer,
  names: { resolve: Resolve; everyMs: number } = { resolve: resolveAll, everyMs: RESOLVE_MS },
): Transport {
  const replicas = new Map<string, Replica>();
  // Clients with the same options would share a connection.
  const makeClient = (address: string): Client => clientTo(address, { 'grpc.use_local_subchannel_pool': 1 });
  const stopRenewal = onRenewed(() => [...replicas.values()].forEach(renew));
  const haveNames = !addresses.every(isNumeric);
  /** When the names are resolved next, by performance.now(). */
  let resolveAtMs = Number.POSITIVE_INFINITY;
  let resolving: NodeJS.Timeout | undefined;
  let closed = false;
  let turn = 0;

  function add(address: string): void {
    const client = makeClient(address);
    const replica: Replica = {
      address,
      client,
      stream: undefined,
      delayMs: FIRST_DELAY_MS,
      timer: undefined,
      openedMs: 0,
    };
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
    replica.openedMs = performance.now();
    const { client } = replica;
    replica.stream = openCallStream(client, (stream) => {
      const isCurrent = replica.stream === stream && replicas.get(replica.address) === replica && !closed;
      if (stream.state !== 'open' && isCurrent) resolveWithin(RESOLVE_SOON_MS);
      if (stream.state === 'open' && isCurrent) {
        replica.delayMs = FIRST_DELAY_MS;
        replica.timer = setTimeout(() => renew(replica), MAX_AGE_MS * (0.9 + Math.random() / 5)).unref();
      } else if (stream.state === 'retiring' && isCurrent) renew(replica);
      else if (stream.state === 'closed') {
        if (isCurrent) reopen(replica);
        else client.close();
      }
    });
  }

  function reopen(replica: Replica): void {
    clearTimeout(replica.timer);
    replica.timer = setTimeout(() => openAgain(replica), replica.delayMs * (0.5 + Math.random() / 2)).unref();
    replica.delayMs = Math.min(2 * replica.delayMs, MAX_DELAY_MS);
  }

  /** A client of grpc-js waits before it connects once more, so each attempt is made by a new one. */
  function openAgain(replica: Replica): void {
    replica.client.close();
    replica.client = makeClient(replica.address);
    open(replica);
  }

  /** Replaces the stream by one on a new connection; the old one answers what it has. */
  function renew(replica: Replica): void {
    const { stream } = replica;
    replica.client = makeClient(replica.address);
    open(replica);
    stream?.retire();
  }

  /**
   * The one with the fewest calls on its open stream; otherwise one whose stream is being opened.
   * @param tried those that have refused the call, which are chosen only if there is no other
   */
  function choose(tried: ReadonlySet<Replica>): Replica | undefined {
    let best: Replica | undefined;
    let all = [...replicas.values()];
    if (tried.size > 0 && !all.every((replica) => tried.has(replica))) all = all.filter((each) => !tried.has(each));
    for (let i = 0; i < all.length; i++) {
      const replica = all[(turn + i) % all.length]!;
      const { stream } = replica;
      if (stream?.state === 'open' && (best?.stream?.state !== 'open' || stream.load < best.stream.load))
        best = replica;
      else if (stream?.state === 'connecting' && !best) best = replica;
    }
    turn++;
    if (best) return best;
    const agoMs = performance.now() - AT_ONCE_MS;
    for (const replica of all) if (replica.stream?.state === 'closed' && replica.openedMs < agoMs) openAgain(replica);
    return all[turn % all.length];
  }

  async function resolve(): Promise<void> {
    const found = await Promise.all(addresses.map((address) => allAddresses(address, names.resolve)));
    if (closed || found.includes(undefined)) return;
    const wanted = new Set(found.flat() as string[]);
    for (const address of wanted) if (!replicas.has(address)) add(address);
    for (const replica of [...replicas.values()]) if (!wanted.has(replica.address)) remove(replica);
  }

  /** Resolves the names after this time, unless they are resolved earlier, and again and again from then on. */
  function resolveWithin(ms: number): void {
    const atMs = performance.now() + ms;
    if (!haveNames || closed || atMs >= resolveAtMs) return;
    resolveAtMs = atMs;
    clearTimeout(resolving);
    resolving = setTimeout(async () => {
      resolveAtMs = Number.POSITIVE_INFINITY;
      await resolve();
      resolveWithin(names.everyMs);
    }, ms).unref();
  }
  for (const address of addresses) add(address);
  resolveWithin(0);

  function withStream(replica: Replica | undefined): { client: Client; stream: CallStream } {
    if (!replica?.stream) throw new NeverSentError('No replica is known');
    return { client: replica.client, stream: replica.stream };
  }

  /** @throws what the caller gets, unless another replica may be tried */
  function requireAnother(error: unknown, attempt: number): void {
    if (!(error instanceof NeverSentError)) throw error;
    if (attempt + 1 >= replicas.size) throw new ServiceError('UNAVAILABLE', undefined, { cause: error });
  }

  return {
    async call(call) {
      const tried = new Set<Replica>();
      for (let attempt = 0; ; attempt++) {
        const replica = choose(tried);
        try {
          const { client, stream } = withStream(replica);
          if (call.request.length <= MAX_FRAME_BYTES) return await stream.call(call);
          const answered = await stream.beside(call);
          return await callUnary(client, call).finally(answered);
        } catch (error) {
          requireAnother(error, attempt);
          tried.add(replica!);
        }
      }
    },
    async *replies(call) {
      const tried = new Set<Replica>();
      for (let attempt = 0; ; attempt++) {
        const replica = choose(tried);
        try {
          const { client, stream } = withStream(replica);
          if (call.request.length <= MAX_FRAME_BYTES) return yield* stream.replies(call);
          const answered = await stream.beside(call, true);
          try {
            return yield* callServerStreaming(client, call);
          } finally {
            answered();
          }
        } catch (error) {
          requireAnother(error, attempt);
          tried.add(replica!);
        }
      }
    },
    load() {
      const streams = [...replicas.values()].flatMap(({ stream }) => (stream?.state === 'open' ? [stream.load] : []));
      return { streams: streams.length, calls: streams.reduce((sum, calls) => sum + calls, 0) };
    },
    close() {
      closed = true;
      clearTimeout(resolving);
      stopRenewal();
      for (const replica of [...replicas.values()]) remove(replica);
    },
  };
}
