import type { DeniedRequest } from 'platform/rpc/interceptors/denials.ts';
import { CALLER_LOST, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Log } from 'platform/core/log.ts';
import { operator } from 'platform/service/testing.ts';
import { eventually } from 'platform/service/test-end.ts';
import { ANY, as, followClient, numberOf, read, reply, startFollowServer, type CarriedBy } from './follow-server.ts';

/** Bytes of a reply whose text is empty and whose number is below 128, and what each reply takes of the window. */
const SMALL = 4;
const PER_REPLY = 32;
const WINDOW = 65_536;

async function* endless(): AsyncGenerator<ReturnType<typeof reply>> {
  for (;;) yield reply(1);
}

describe.each<CarriedBy>(['streams', 'unary calls'])('a server-streaming call, carried by %s,', (carriedBy) => {
  it('brings replies of every size, in order, and the end', async () => {
    const sizes = [0, 10, 200_000, 0, 65_536, 5, 1_000_000, 1, 0];
    const { address } = await startFollowServer(async function* () {
      for (const [i, bytes] of sizes.entries()) yield reply(i, bytes);
    });
    const { follow } = await followClient(address, carriedBy);
    const whole = { seen: sizes.map((bytes, i) => [i, bytes]), error: undefined };
    const reading = () => read(follow(ANY, as()), (one) => [numberOf(one), one.jobs[0]!.name.length]);
    expect(await Promise.all([reading(), reading(), reading()])).toEqual([whole, whole, whole]);
  });

  it('brings no reply when there is none', async () => {
    const { address } = await startFollowServer(async function* () {});
    const { follow } = await followClient(address, carriedBy);
    expect(await read(follow(ANY, as()), numberOf)).toEqual({ seen: [], error: undefined });
  });

  it('brings an error with all its parts, after the replies before it', async () => {
    const { address } = await startFollowServer(async function* () {
      yield reply(1, 100_000);
      yield reply(2);
      throw new ServiceError('CONFLICT', 'changed', { facts: { version: 3 } });
    });
    const { follow, act } = await followClient(address, carriedBy);
    for (const method of [follow, act]) {
      const { seen, error } = await read(method(ANY, as()), numberOf);
      expect(seen).toEqual([1, 2]);
      expect(error).toMatchObject({ reason: 'CONFLICT', message: 'changed', facts: { version: 3 } });
    }
  });

  it('has a request that is too large for a frame', async () => {
    const name = 'x'.repeat(100_000);
    const { address } = await startFollowServer(async function* (request) {
      yield reply(request.name.length);
    });
    const { follow } = await followClient(address, carriedBy);
    expect(await read(follow({ name }, as()), numberOf)).toEqual({ seen: [name.length], error: undefined });
  });

  it('is cancelled when the caller leaves the loop', async () => {
    const ended = Promise.withResolvers<CallContext>();
    const { address } = await startFollowServer(async function* (_request, context) {
      try {
        yield* endless();
      } finally {
        ended.resolve(context);
      }
    });
    const { follow, ask } = await followClient(address, carriedBy);
    for await (const _one of follow(ANY, as())) break;
    const { signal } = await ended.promise;
    expect([signal.aborted, signal.reason === CALLER_LOST]).toEqual([true, false]);
    expect(await ask({}, as())).toEqual({ jobs: [] });
  });

  it('is cancelled by the signal of the caller, also while the handler waits for something else', async () => {
    const context = Promise.withResolvers<CallContext>();
    const { address } = await startFollowServer(async function* (_request, given) {
      context.resolve(given);
      yield reply(1);
      await new Promise(() => undefined);
    });
    const { follow } = await followClient(address, carriedBy);
    const caller = new AbortController();
    const reading = read(follow(ANY, as({ signal: caller.signal })), () => caller.abort());
    expect(await reading).toMatchObject({ seen: [undefined], error: { reason: 'CLIENT_GONE' } });
    const { signal } = await context.promise;
    await eventually(() => signal.aborted);
    const { error } = await read(follow(ANY, as({ signal: caller.signal })), numberOf);
    expect(error).toMatchObject({ reason: 'CLIENT_GONE' });
  });

  it('has one deadline for all replies', async () => {
    const contexts: CallContext[] = [];
    const { address } = await startFollowServer(async function* (_request, context) {
      contexts.push(context);
      yield reply(1);
      await new Promise(() => undefined);
    });
    const { follow, act, ask } = await followClient(address, carriedBy);
    await ask({}, as());
    const deadline = Date.now() + 1_000;
    const errors = [follow, act].map(async (method) => (await read(method(ANY, as({ deadline })), numberOf)).error);
    expect(await Promise.all(errors)).toMatchObject([{ reason: 'UNAVAILABLE' }, { reason: 'OUTCOME_UNKNOWN' }]);
    expect(contexts).toHaveLength(2);
    await eventually(() => contexts.every(({ signal }) => signal.aborted && signal.reason !== CALLER_LOST));
  });

  it('takes replies up to the size that the caller gives, one by one', async () => {
    const { address } = await startFollowServer(async function* () {
      for (let i = 0; i < 10; i++) yield reply(i, 900);
      yield reply(10, 1_000);
    });
    const { follow } = await followClient(address, carriedBy);
    const { seen, error } = await read(follow(ANY, as({ maxReplyBytes: 1_000 })), numberOf);
    expect(seen).toHaveLength(10);
    expect(error).toMatchObject({ reason: 'REPLY_TOO_LARGE', facts: { bytes: expect.any(Number) } });
  });

  it('is checked and logged like a unary one', async () => {
    const denied: DeniedRequest[] = [];
    const lines: string[] = [];
    const write = (_facts: object, line: string): void => void lines.push(line);
    const all = { debug: write, info: write, warn: write, error: write };
    const log = { ...all, isLevelEnabled: () => true } as unknown as Log;
    let begun = 0;
    const { address } = await startFollowServer(
      async function* (_request, { principal }) {
        begun++;
        yield reply(1);
        if (principal.organizationId === 'denied') throw new ServiceError('FORBIDDEN');
        if (principal.organizationId === 'fails') throw new Error('a bug');
      },
      { log, onDenied: (one) => denied.push(one) },
    );
    const stranger = await followClient(address, carriedBy, 'gateway');
    const { follow } = await followClient(address, carriedBy);
    const reasonFor = async (organizationId: string, client = follow) =>
      ((await read(client(ANY, as({ principal: operator(organizationId) })), numberOf)).error as ServiceError)?.reason;
    expect(await reasonFor('', stranger.follow)).toBe('UNAUTHENTICATED');
    expect(begun).toBe(0);
    expect(await reasonFor('denied')).toBe('FORBIDDEN');
    expect(denied).toMatchObject([{ organizationId: 'denied', code: 'forbidden', requestId: 'test' }]);
    expect(await reasonFor('fails')).toBe('INTERNAL');
    expect(await reasonFor('answered')).toBeUndefined();
    expect(lines).toEqual(['rejected', 'rejected', 'failed', 'answered']);
  });
});

describe('the replies of a server-streaming call', () => {
  it('are made as the caller consumes them, while other calls of the stream are answered', async () => {
    let made = 0;
    const { address } = await startFollowServer(async function* (request) {
      if (request.name === 'slow') for await (const one of endless()) yield (made++, one);
      for (let i = 0; i < 3_000; i++) yield reply(i);
    });
    const { act, ask } = await followClient(address);
    const slow = act({ name: 'slow' }, as())[Symbol.asyncIterator]();
    const others = async () => {
      expect((await read(act(ANY, as()), numberOf)).seen).toHaveLength(3_000);
      for (let i = 0; i < 100; i++) await ask({}, as());
    };
    /** Replies until the window is full: it may be exceeded by one of them. */
    const perWindow = Math.ceil(WINDOW / (SMALL + PER_REPLY));
    await slow.next();
    await eventually(() => made === perWindow);
    await others();
    expect(made).toBe(perWindow);
    for (let i = 1; i < 5_000; i++) await slow.next();
    await others();
    expect(made).toBeGreaterThan(5_000);
    expect(made).toBeLessThanOrEqual(5_000 + perWindow);
    await slow.return?.();
  });

  it('that are larger than the window come one at a time', async () => {
    let made = 0;
    const { address } = await startFollowServer(async function* () {
      for (let i = 0; i < 20; i++) yield (made++, reply(i, 300_000));
    });
    const { act, ask } = await followClient(address);
    let consumed = 0;
    for await (const one of act(ANY, as())) {
      await ask({}, as());
      expect([numberOf(one), made]).toEqual([consumed, consumed + 1]);
      consumed++;
    }
    expect(consumed).toBe(20);
  });

  it('come in turns with those of other calls', async () => {
    const { address } = await startFollowServer(async function* () {
      for (let i = 0; i < 500; i++) yield reply(i, 100_000);
    });
    const { act } = await followClient(address);
    const consumed = [0, 0, 0, 0, 0];
    await Promise.all(
      consumed.map(async (_none, call) => {
        for await (const _one of act(ANY, as())) {
          consumed[call]!++;
          if (Math.max(...consumed) >= 50) break;
        }
      }),
    );
    expect(Math.min(...consumed)).toBeGreaterThan(25);
  });
});

it('an organization has at most half of the thousand streaming calls, and those hold up no other call', async () => {
  const { address } = await startFollowServer(async function* () {
    yield reply(1);
    await new Promise(() => undefined);
  });
  const { act, ask } = await followClient(address);
  const open = Array.from({ length: 500 }, () => act(ANY, as())[Symbol.asyncIterator]());
  await Promise.all(open.map((one) => one.next()));
  expect((await read(act(ANY, as()), numberOf)).error).toMatchObject({ reason: 'UNAVAILABLE' });
  for await (const one of act(ANY, as({ principal: operator('other') }))) {
    expect(numberOf(one)).toBe(1);
    break;
  }
  for (let i = 0; i < 100; i++) await ask({}, as());
  await Promise.all(open.splice(0, 1).map(async (one) => one.return?.()));
  const next = act(ANY, as())[Symbol.asyncIterator]();
  expect(numberOf((await next.next()).value)).toBe(1);
  await Promise.all([...open, next].map(async (one) => one.return?.()));
});
