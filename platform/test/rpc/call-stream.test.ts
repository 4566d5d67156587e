import { jest } from '@jest/globals';
import type { Socket } from 'node:net';
import { ServiceError } from 'platform/core/errors.ts';
import { CALLER_LOST } from 'platform/rpc/call.ts';
import type { CarriedCall } from 'platform/rpc/call-carrier.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { tcpProxy } from './tcp-proxy.ts';
import { callOf, connect, hanging, outcome, PEER, startReplica, textOf } from './replica-server.ts';

const NOTHING = new Uint8Array();

describe('a stream of calls', () => {
  it('carries each request to its handler, and its reply or error back', async () => {
    const seen: Omit<CarriedCall, 'signal' | 'deadline'>[] = [];
    const { address } = await startReplica(async ({ signal: _, deadline, ...call }) => {
      seen.push(call);
      expect(deadline).toBeGreaterThan(Date.now() + 10_000);
      if (call.method === 'fails')
        throw new ServiceError('INSUFFICIENT_CREDITS', 'no', { facts: { needed: 2 }, headers: { 'retry-after': '1' } });
      return Buffer.from(`${call.method} ${textOf(call.request)}`);
    });
    const replicas = connect(address);
    const calls = ['a', 'b', 'c'].map((text) => replicas.call(callOf('echo', { request: Buffer.from(text) })));
    expect((await Promise.all(calls)).map(textOf)).toEqual(['echo a', 'echo b', 'echo c']);
    await expect(
      replicas.call(callOf('fails', { principal: Buffer.from('me'), maxReplyBytes: 9 })),
    ).rejects.toMatchObject({
      reason: 'INSUFFICIENT_CREDITS',
      message: 'no',
      facts: { needed: 2 },
      headers: { 'retry-after': '1' },
    });
    expect(seen.at(-1)).toEqual({
      method: 'fails',
      request: Buffer.alloc(0),
      peer: PEER,
      principal: Buffer.from('me'),
      requestId: 'r1',
      traceparent: '',
      maxReplyBytes: 9,
    });
  });

  it('carries numbers of every kind', async () => {
    const { address } = await startReplica(async ({ maxReplyBytes }) => Buffer.from(String(maxReplyBytes)));
    const replicas = connect(address);
    const replyTo = (maxReplyBytes: number, deadline: number) =>
      outcome(replicas.call(callOf('numbers', { maxReplyBytes, deadline })));
    expect(await replyTo(75_271.25, Date.now() + 60_000.5)).toBe('75271');
    expect(await replyTo(Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER)).toBe('4294967295');
  });

  it('begins the calls of one message together, and sends no more than 16 in a message', async () => {
    const together: number[] = [];
    let isTogether = false;
    const { address } = await startReplica(async () => {
      if (!isTogether) {
        isTogether = true;
        queueMicrotask(() => (isTogether = false));
        together.push(0);
      }
      together[together.length - 1]!++;
      return NOTHING;
    });
    const replicas = connect(address);
    await replicas.call(callOf('first'));
    await Promise.all(Array.from({ length: 10 }, () => replicas.call(callOf('few'))));
    await Promise.all(Array.from({ length: 40 }, () => replicas.call(callOf('many'))));
    expect(together).toEqual([1, 10, 16, 16, 8]);
  });

  it('calls that begin one by one share messages, and another organization does not wait for all of them', async () => {
    const begun: string[] = [];
    let messages = 0;
    let isTogether = false;
    const { address } = await startReplica(async ({ method }) => {
      if (!isTogether) {
        isTogether = true;
        messages++;
        queueMicrotask(() => (isTogether = false));
      }
      begun.push(method);
      return NOTHING;
    });
    const replicas = connect(address);
    await replicas.call(callOf('first'));
    const laterCall = (method: string, organizationId: string): Promise<unknown> =>
      new Promise((resolve) => setImmediate(() => resolve(replicas.call(callOf(method, { organizationId })))));
    const calls = Array.from({ length: 200 }, () => laterCall('of A', 'A'));
    await Promise.all([...calls, laterCall('of B', 'B')]);
    expect(begun).toHaveLength(202);
    expect(messages).toBeLessThan(25);
    expect(begun.indexOf('of B')).toBeLessThan(50);
  });

  it('sends a long reply in pieces, between which other replies come', async () => {
    const long = Buffer.alloc(24 << 20, 'x');
    const { address } = await startReplica(async ({ method }) => (method === 'long' ? long : Buffer.from('short')));
    const replicas = connect(address);
    const order: string[] = [];
    const note = async (name: string, call: Promise<Uint8Array>) => {
      const { length } = await call;
      order.push(name);
      return length;
    };
    const first = note('long', replicas.call(callOf('long')));
    const others = Promise.all(
      Array.from({ length: 3 }, async () => {
        await note('short', replicas.call(callOf('short')));
        await note('short', replicas.call(callOf('short')));
      }),
    );
    expect(await first).toBe(long.length);
    await others;
    expect(order.indexOf('long')).toBeGreaterThan(2);
  });

  it('brings the replies of one call in order, long and short ones, and then the error', async () => {
    const sizes = [1, 200_000, 2, 3, 300_000, 4];
    const { address } = await startReplica(async ({ send }) => {
      for (const size of sizes) void send!(Buffer.alloc(size));
      throw new ServiceError('CONFLICT');
    });
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { length } of connect(address).replies(callOf('several'))) seen.push(length);
    })();
    await expect(reading).rejects.toMatchObject({ reason: 'CONFLICT' });
    expect(seen).toEqual(sizes);
  });

  it.each([
    [true, 'UNAVAILABLE'],
    [false, 'OUTCOME_UNKNOWN'],
  ])('ends a call at its deadline at both ends (repeatable: %s)', async (repeatable, reason) => {
    const began = Promise.withResolvers<AbortSignal>();
    const { address } = await startReplica((call) => {
      began.resolve(call.signal);
      return hanging(call);
    });
    const replicas = connect(address);
    const call = outcome(replicas.call(callOf('hangs', { deadline: Date.now() + 3_600_000, repeatable })));
    const signal = await began.promise;
    const inTwoHours = Date.now() + 7_200_000;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(inTwoHours);
    expect(await call).toBe(reason);
    await eventually(() => signal.aborted);
    clock.mockRestore();
    expect(signal.reason).not.toBe(CALLER_LOST);
  });

  it('does not answer a call whose deadline has passed: the outcome is what the caller finds out by itself', async () => {
    const began = Promise.withResolvers<() => void>();
    const { address } = await startReplica(async () => {
      await new Promise<void>((resolve) => began.resolve(resolve));
      throw new ServiceError('CLIENT_GONE');
    });
    const call = outcome(connect(address).call(callOf('late', { deadline: Date.now() + 3_600_000 })));
    const answer = await began.promise;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 7_200_000);
    answer();
    expect(await call).toBe('UNAVAILABLE');
    clock.mockRestore();
  });

  it('tells the service of a call that is cancelled, and of no other', async () => {
    const began = Promise.withResolvers<CarriedCall>();
    const { address } = await startReplica((call) => {
      if (call.method === 'other') return Promise.resolve(Buffer.from('answered'));
      began.resolve(call);
      return hanging(call);
    });
    const replicas = connect(address);
    const caller = new AbortController();
    const call = replicas.call(callOf('hangs', { signal: caller.signal }));
    const { signal } = await began.promise;
    caller.abort();
    expect(await outcome(call)).toBe('CLIENT_GONE');
    await eventually(() => signal.aborted);
    expect(signal.reason).not.toBe(CALLER_LOST);
    expect(await outcome(replicas.call(callOf('other')))).toBe('answered');
    expect(await outcome(replicas.call(callOf('other', { signal: AbortSignal.abort() })))).toBe('CLIENT_GONE');
  });

  it('tells the service that the caller is lost', async () => {
    const began = Promise.withResolvers<AbortSignal>();
    const { port } = await startReplica((call) => {
      began.resolve(call.signal);
      return hanging(call);
    });
    const proxy = await tcpProxy(port);
    const replicas = connect(`127.0.0.1:${proxy.port}`);
    const call = outcome(replicas.call(callOf('hangs')));
    const signal = await began.promise;
    proxy.close();
    expect(await call).toBe('UNAVAILABLE');
    await eventually(() => signal.aborted);
    expect(signal.reason).toBe(CALLER_LOST);
  });

  it('is closed when the open calls are answered', async () => {
    const began = Promise.withResolvers<() => void>();
    const { address } = await startReplica(
      () => new Promise((resolve) => began.resolve(() => resolve(Buffer.from('answered')))),
    );
    const replicas = connect(address);
    const call = outcome(replicas.call(callOf('waits')));
    const answer = await began.promise;
    replicas.close();
    expect(await outcome(replicas.call(callOf('late')))).toBe('UNAVAILABLE');
    answer();
    expect(await call).toBe('answered');
  });

  it('moves to a new connection when the certificate is renewed; the old one answers what it has', async () => {
    const began = Promise.withResolvers<() => void>();
    const { port } = await startReplica(({ method }) =>
      method === 'next'
        ? Promise.resolve(Buffer.from('answered'))
        : new Promise((resolve) => began.resolve(() => resolve(Buffer.from('answered')))),
    );
    const connections = new Set<Socket>();
    const open = () => [...connections].filter(({ destroyed }) => !destroyed).length;
    const proxy = await tcpProxy(port, (_bytes, connection) => connections.add(connection));
    closedInTheEnd(async () => proxy.close());
    const replicas = connect(`127.0.0.1:${proxy.port}`);
    const call = outcome(replicas.call(callOf('waits', { repeatable: false })));
    const answer = await began.promise;
    replicas.renewCertificate();
    expect(await outcome(replicas.call(callOf('next', { repeatable: false })))).toBe('answered');
    expect([connections.size, open()]).toEqual([2, 2]);
    answer();
    expect(await call).toBe('answered');
    await eventually(() => open() === 1);
  });

  it('bounds the calls that the service has at once: the others wait', async () => {
    const begun: (() => void)[] = [];
    const { address } = await startReplica(() => new Promise((resolve) => begun.push(() => resolve(NOTHING))));
    const replicas = connect(address);
    const calls = Array.from({ length: 2_100 }, () => replicas.call(callOf('waits')));
    await eventually(() => begun.length === 2_000);
    for (let i = 0; i < 100; i++) begun[i]!();
    await eventually(() => begun.length === 2_100);
    for (const answer of begun) answer();
    expect(await Promise.all(calls)).toHaveLength(2_100);
  });

  it('does not let the waiting calls of one organization hold up those of another', async () => {
    const begun: { method: string; answer(): void }[] = [];
    const { address } = await startReplica(
      ({ method }) => new Promise((resolve) => begun.push({ method, answer: () => resolve(NOTHING) })),
    );
    const replicas = connect(address);
    const calls = Array.from({ length: 2_100 }, () => replicas.call(callOf('of A')));
    await eventually(() => begun.length === 2_000);
    calls.push(replicas.call(callOf('of B', { organizationId: 'B' })));
    for (let i = 0; i < 2; i++) begun[i]!.answer();
    await eventually(() => begun.length === 2_002);
    expect(begun.slice(2_000).map(({ method }) => method)).toContain('of B');
    for (let i = 2; i < 2_101; i++) {
      await eventually(() => begun.length > i);
      begun[i]!.answer();
    }
    expect(await Promise.all(calls)).toHaveLength(2_101);
  });
});
