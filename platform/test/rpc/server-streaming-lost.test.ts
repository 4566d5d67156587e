import { once } from 'node:events';
import type { Socket } from 'node:net';
import { isCallerLost } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import {
  ANY,
  as,
  followClient,
  numberOf,
  operatorClient,
  read,
  reply,
  startFollowServer,
  type CarriedBy,
  type Follow,
} from './follow-server.ts';
import { tcpProxy } from './tcp-proxy.ts';

/** Yields this number, and then nothing until the call ends. */
const yieldOnce = (number: number): Follow =>
  async function* () {
    yield reply(number);
    await new Promise(() => undefined);
  };
const reasonOf = (error: unknown): string | undefined => (error as ServiceError | undefined)?.reason;

describe.each<CarriedBy>(['streams', 'unary calls'])('a server-streaming call, carried by %s,', (carriedBy) => {
  it.each([
    ['follow', 'UNAVAILABLE'],
    ['act', 'OUTCOME_UNKNOWN'],
  ] as const)('whose connection is lost ends after the replies that have arrived (%s)', async (method, reason) => {
    const signals: AbortSignal[] = [];
    const { port } = await startFollowServer(async function* (request, context) {
      signals.push(context.signal);
      yield* yieldOnce(1)(request, context);
    });
    const proxy = await tcpProxy(port);
    closedInTheEnd(() => proxy.close());
    const client = await followClient(`127.0.0.1:${proxy.port}`, carriedBy);
    const { seen, error } = await read(client[method](ANY, as()), (one) => {
      proxy.close();
      return numberOf(one);
    });
    expect([seen, reasonOf(error)]).toEqual([[1], reason]);
    // A call of which a reply has arrived is not made again.
    expect(signals).toHaveLength(1);
    await eventually(() => signals[0]!.aborted);
    if (carriedBy === 'streams') expect(isCallerLost(signals[0]!)).toBe(true);
  });

  it('that nobody answers ends as UNAVAILABLE', async () => {
    const { address, drain } = await startFollowServer(yieldOnce(1));
    await drain(0);
    const { act } = await followClient(address, carriedBy);
    expect(reasonOf((await read(act(ANY, as()), numberOf)).error)).toBe('UNAVAILABLE');
  });

  it('of a repeatable method ends as UNAVAILABLE when the service stops, whatever its handler waits for', async () => {
    const { address, drain } = await startFollowServer(yieldOnce(1));
    const { follow } = await followClient(address, carriedBy);
    let drained: Promise<void> | undefined;
    const { seen, error } = await read(follow(ANY, as()), (one) => {
      drained = drain(2_000);
      return numberOf(one);
    });
    expect(seen).toEqual([1]);
    expect(error).toMatchObject({ reason: 'UNAVAILABLE', message: 'The service is about to stop' });
    await drained;
  });

  it('may end by itself while the service stops', async () => {
    const resume = Promise.withResolvers<void>();
    const { address, drain } = await startFollowServer(async function* () {
      yield reply(1);
      await resume.promise;
      yield reply(2);
    });
    const { follow, act } = await followClient(address, carriedBy);
    const begun: number[] = [];
    const reading = [follow, act].map((method) => read(method(ANY, as()), (one) => begun.push(numberOf(one))));
    await eventually(() => begun.length === 2);
    const drained = drain(60_000);
    resume.resolve();
    expect((await Promise.all(reading)).map(({ error }) => error)).toEqual([undefined, undefined]);
    expect(begun).toEqual([1, 1, 2, 2]);
    await drained;
  });
});

it('a command learns which process does not answer its server-streaming call', async () => {
  const { address, drain } = await startFollowServer(yieldOnce(1));
  const { follow } = await operatorClient(address);
  for await (const one of follow(ANY, as())) {
    expect(numberOf(one)).toBe(1);
    break;
  }
  await drain(0);
  const { error } = await read(follow(ANY, as()), numberOf);
  expect(error).toMatchObject({
    reason: 'UNAVAILABLE',
    message: `memory does not answer at ${address}: is it running?`,
  });
});

it('a server-streaming call is made again if it may be and its connection is lost before the first reply', async () => {
  const began: string[] = [];
  const { port } = await startFollowServer(async function* ({ name }) {
    began.push(name);
    if (began.length <= 2) await new Promise(() => undefined);
    yield reply(1);
  });
  const connections = new Set<Socket>();
  const proxy = await tcpProxy(port, (_bytes, connection) => connections.add(connection));
  closedInTheEnd(() => proxy.close());
  const { follow, act } = await followClient(`127.0.0.1:${proxy.port}`);
  const reading = [act({ name: 'act' }, as()), follow({ name: 'follow' }, as())].map((call) => read(call, numberOf));
  await eventually(() => began.length === 2);
  for (const connection of connections) connection.destroy();
  const [acted, followed] = await Promise.all(reading);
  expect(reasonOf(acted!.error)).toBe('OUTCOME_UNKNOWN');
  expect(followed).toEqual({ seen: [1], error: undefined });
  expect(began.slice(2)).toEqual(['follow']);
});

it('a server-streaming call goes on at another replica when one stops: the caller says from where', async () => {
  const calls: { replica: number; from: number }[] = [];
  const start = (replica: number) =>
    startFollowServer(async function* (request, { signal }) {
      calls.push({ replica, from: Number(request.name) });
      const to = calls.length === 1 ? 10 : 100;
      for (let i = Number(request.name); i < to; i++) yield reply(i);
      // A handler that returns when it is told to end has not come to its end.
      if (to === 10) await once(signal, 'abort');
    });
  const servers = [await start(0), await start(1)];
  const { follow } = await followClient(servers.map(({ address }) => address).join());
  const seen: number[] = [];
  const reasons: unknown[] = [];
  while (seen.length < 100) {
    const { error } = await read(follow({ name: String(seen.length) }, as()), (one) => {
      seen.push(numberOf(one));
      if (seen.length === 10) void servers[calls[0]!.replica]!.drain(1_000);
    });
    if (error) reasons.push(reasonOf(error));
  }
  expect(seen).toEqual(Array.from({ length: 100 }, (_, i) => i));
  expect(reasons).toEqual(['UNAVAILABLE']);
  const { replica } = calls[0]!;
  expect(calls).toEqual([
    { replica, from: 0 },
    { replica: 1 - replica, from: 10 },
  ]);
});
