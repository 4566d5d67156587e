import type { RunJobRequest } from 'proto/platform/v1/jobs.ts';
import { isCallerLost, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { operator } from 'platform/service/testing.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import {
  as,
  followClient,
  numberOf,
  operatorClient,
  read,
  reply,
  startConverseServer,
  type Converse,
} from './follow-server.ts';
import { tcpProxy } from './tcp-proxy.ts';

const WINDOW = 65_536;
/** What each request takes of the window beside its bytes. */
const PER_REQUEST = 32;

const request = (bytes: number): RunJobRequest => ({ name: 'x'.repeat(bytes) });
/** Replies to each request with its length. */
const lengths: Converse = async function* (requests) {
  for await (const { name } of requests) yield reply(name.length);
};
async function* all<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
const reasonOf = (error: unknown): string | undefined => (error as ServiceError | undefined)?.reason;

/** Requests without end; says how many were read, and whether their reader has left. */
function endless(bytes = 0) {
  const state = { read: 0, isLeft: false };
  async function* requests(): AsyncGenerator<RunJobRequest> {
    try {
      for (;;) {
        state.read++;
        yield request(bytes);
      }
    } finally {
      state.isLeft = true;
    }
  }
  return { state, requests: requests() };
}

describe('a bidirectional call', () => {
  it('brings requests of every size, in order, and the end of them', async () => {
    const sizes = [0, 10, 200_000, 0, 65_536, 5, 1_000_000, 1, 0];
    const { address } = await startConverseServer(async function* (requests) {
      yield* lengths(requests, undefined as never);
      yield reply(-1);
    });
    const { converse, work } = await followClient(address);
    const reading = (method: typeof work) => read(method(all(sizes.map(request)), as()), numberOf);
    const whole = { seen: [...sizes, -1], error: undefined };
    expect(await Promise.all([reading(work), reading(work), reading(converse)])).toEqual([whole, whole, whole]);
  });

  it('lets each end wait for what the other has said', async () => {
    const { address } = await startConverseServer(lengths);
    const { work } = await followClient(address);
    let answered = (_number: number): void => undefined;
    async function* askedOneByOne(): AsyncGenerator<RunJobRequest> {
      for (let bytes = 1; bytes < 1_000; bytes *= 2) {
        const answer = new Promise<number>((resolve) => (answered = resolve));
        yield request(bytes);
        expect(await answer).toBe(bytes);
      }
    }
    const { seen, error } = await read(work(askedOneByOne(), as()), (one) => answered(numberOf(one)));
    expect([seen.length, error]).toEqual([10, undefined]);
  });

  it('ends with its handler, which need not read: the requests are left', async () => {
    const { address } = await startConverseServer(async function* (requests) {
      for await (const _one of requests) break;
      yield reply(7);
    });
    const { work } = await followClient(address);
    const { state, requests } = endless();
    expect(await read(work(requests, as()), numberOf)).toEqual({ seen: [7], error: undefined });
    await eventually(() => state.isLeft);
  });

  it('brings the error of the handler with all its parts', async () => {
    const { address } = await startConverseServer(async function* (requests) {
      for await (const _one of requests) {
        yield reply(1);
        throw new ServiceError('CONFLICT', 'changed', { facts: { version: 3 } });
      }
    });
    const { work } = await followClient(address);
    const { state, requests } = endless();
    const { seen, error } = await read(work(requests, as()), numberOf);
    expect(seen).toEqual([1]);
    expect(error).toMatchObject({ reason: 'CONFLICT', message: 'changed', facts: { version: 3 } });
    await eventually(() => state.isLeft);
  });

  it('tells a source that waits for its next request, and who reads requests, that the call has ended', async () => {
    const reader = Promise.withResolvers<unknown>();
    const { address } = await startConverseServer(async function* (requests) {
      const readAll = async (): Promise<void> => {
        for await (const _one of requests);
      };
      readAll().catch(reader.resolve);
      yield reply(1);
    });
    const { work } = await followClient(address);
    const left = Promise.withResolvers<void>();
    const source = {
      next: () => new Promise<never>(() => undefined),
      return: async () => (left.resolve(), { done: true as const, value: undefined }),
    };
    const { seen } = await read(work({ [Symbol.asyncIterator]: () => source }, as()), numberOf);
    expect(seen).toEqual([1]);
    await left.promise;
    expect(reasonOf(await reader.promise)).toBe('CLIENT_GONE');
  });

  it('is cancelled also when its source gives it up as it is asked for the first request', async () => {
    const contexts: CallContext[] = [];
    const { address } = await startConverseServer(async function* (_requests, context) {
      contexts.push(context);
      await new Promise(() => undefined);
      yield reply(1);
    });
    const { work } = await followClient(address);
    const caller = new AbortController();
    const left = Promise.withResolvers<void>();
    const source = {
      next() {
        caller.abort();
        return new Promise<never>(() => undefined);
      },
      return: async () => (left.resolve(), { done: true as const, value: undefined }),
    };
    const call = work({ [Symbol.asyncIterator]: () => source }, as({ signal: caller.signal }));
    expect(reasonOf((await read(call, numberOf)).error)).toBe('CLIENT_GONE');
    await eventually(() => contexts[0]?.signal.aborted);
    await left.promise;
  });

  it('is cancelled when the caller leaves the loop, or its requests throw', async () => {
    const contexts: CallContext[] = [];
    const { address } = await startConverseServer(async function* (requests, context) {
      contexts.push(context);
      for await (const _one of requests) yield reply(1);
    });
    const { work, ask } = await followClient(address);
    await ask({}, as());
    const { state, requests } = endless(1_000);
    for await (const _one of work(requests, as())) break;
    await eventually(() => state.isLeft);
    async function* broken(): AsyncGenerator<RunJobRequest> {
      yield request(1);
      await eventually(() => contexts.length === 2);
      throw new Error('the source is broken');
    }
    const { error } = await read(work(broken(), as()), numberOf);
    expect(error).toMatchObject({ message: 'the source is broken' });
    const unreadable = {
      [Symbol.asyncIterator]() {
        throw new Error('the source cannot be read');
      },
    };
    expect((await read(work(unreadable, as()), numberOf)).error).toMatchObject({
      message: 'the source cannot be read',
    });
    await eventually(() => contexts.every(({ signal }) => signal.aborted && !isCallerLost(signal)));
    expect(await ask({}, as())).toEqual({ jobs: [] });
  });

  it.each([
    ['converse', 'UNAVAILABLE'],
    ['work', 'OUTCOME_UNKNOWN'],
  ] as const)('is not made again when its connection is lost, once a request was read (%s)', async (method, reason) => {
    const signals: AbortSignal[] = [];
    const { address } = await startConverseServer(async function* (requests, { signal }) {
      signals.push(signal);
      for await (const _one of requests) await new Promise(() => undefined);
      yield reply(1);
    });
    const proxy = await tcpProxy(Number(address.split(':').at(-1)));
    closedInTheEnd(() => proxy.close());
    const client = await followClient(`127.0.0.1:${proxy.port}`);
    const { state, requests } = endless();
    const reading = read(client[method](requests, as()), numberOf);
    await eventually(() => signals.length === 1);
    proxy.close();
    expect(reasonOf((await reading).error)).toBe(reason);
    await eventually(() => state.isLeft && signals[0]!.aborted);
    expect(isCallerLost(signals[0]!)).toBe(true);
    expect(signals).toHaveLength(1);
  });

  it('has one deadline', async () => {
    const { address } = await startConverseServer(async function* () {
      await new Promise(() => undefined);
      yield reply(1);
    });
    const { work, ask } = await followClient(address);
    await ask({}, as());
    const { state, requests } = endless();
    const { error } = await read(work(requests, as({ deadline: Date.now() + 1_000 })), numberOf);
    expect(reasonOf(error)).toBe('OUTCOME_UNKNOWN');
    await eventually(() => state.isLeft);
  });

  it('is checked like a unary one', async () => {
    let begun = 0;
    const { address } = await startConverseServer(async function* (_requests, { principal }) {
      begun++;
      yield reply(1);
      if (principal.organizationId === 'denied') throw new ServiceError('FORBIDDEN');
    });
    const stranger = await followClient(address, 'streams', 'gateway');
    const { work } = await followClient(address);
    expect(reasonOf((await read(stranger.work(all([]), as()), numberOf)).error)).toBe('UNAUTHENTICATED');
    expect(begun).toBe(0);
    const denied = await read(work(all([]), as({ principal: operator('denied') })), numberOf);
    expect([denied.seen, reasonOf(denied.error)]).toEqual([[1], 'FORBIDDEN']);
  });
});

describe('the requests of a bidirectional call', () => {
  it('are read as the handler consumes them, while other calls are answered', async () => {
    const resume = Promise.withResolvers<void>();
    let consumed = 0;
    const { address } = await startConverseServer(async function* (requests) {
      for await (const _one of requests) {
        await resume.promise;
        if (++consumed === 3_000) break;
      }
      yield reply(1);
    });
    const { work, ask } = await followClient(address);
    const { state, requests } = endless();
    const reading = read(work(requests, as()), numberOf);
    const perWindow = WINDOW / PER_REQUEST;
    await eventually(() => state.read === perWindow);
    for (let i = 0; i < 100; i++) await ask({}, as());
    expect(state.read).toBe(perWindow);
    resume.resolve();
    expect(await reading).toEqual({ seen: [1], error: undefined });
    expect(state.read).toBeLessThanOrEqual(3_000 + perWindow);
  });

  it('come in pieces, so that a call beside a large one is answered before the large one has arrived', async () => {
    const { address } = await startConverseServer(lengths);
    const { work, ask } = await followClient(address);
    await ask({}, as());
    const order: string[] = [];
    const large = read(work(all([request(4_000_000)]), as()), numberOf).then(({ seen }) => order.push(`large ${seen}`));
    const small = ask({}, as()).then(() => order.push('small'));
    await Promise.all([large, small]);
    expect(order).toEqual(['small', 'large 4000000']);
  });

  it('have a largest size, and one above it ends the call alone', async () => {
    const { address } = await startConverseServer(lengths);
    const { work, ask } = await followClient(address);
    const { seen, error } = await read(work(all([1, 5 << 20, 2].map(request)), as()), numberOf);
    expect([seen, reasonOf(error)]).toEqual([[1], 'BODY_TOO_LARGE']);
    expect(await ask({}, as())).toEqual({ jobs: [] });
  });

  it('all go to another replica if the first one has not got the call', async () => {
    const [first, second] = [await startConverseServer(lengths), await startConverseServer(lengths)];
    const { work } = await followClient(`${first.address},${second.address}`);
    await first.drain(0);
    for (let i = 0; i < 10; i++)
      expect(await read(work(all([1, 2, 3].map(request)), as()), numberOf)).toEqual({
        seen: [1, 2, 3],
        error: undefined,
      });
  });
});

it('a command makes bidirectional calls, too', async () => {
  const { address, drain } = await startConverseServer(lengths);
  const { work } = await operatorClient(address);
  expect((await read(work(all([1, 2].map(request)), as()), numberOf)).seen).toEqual([1, 2]);
  await drain(0);
  const { error } = await read(work(all([request(1)]), as()), numberOf);
  expect(error).toMatchObject({ message: `memory does not answer at ${address}: is it running?` });
});
