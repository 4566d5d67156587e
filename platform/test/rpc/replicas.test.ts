import { jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { HandleCarried } from 'platform/rpc/call-carrier.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { callOf, connect, hanging, outcome, startReplica } from './replica-server.ts';

describe('replicas of a service', () => {
  it('that lose their connection: what was sent has an unknown outcome, and a later call finds the new one', async () => {
    const began = Promise.withResolvers<void>();
    const { port, address, kill } = await startReplica((call) => {
      began.resolve();
      return hanging(call);
    });
    const replicas = connect(address);
    const [repeatable, once] = [true, false].map((value) =>
      outcome(replicas.call(callOf('hangs', { repeatable: value }))),
    );
    await began.promise;
    await kill();
    expect(await Promise.all([repeatable, once])).toEqual(['UNAVAILABLE', 'OUTCOME_UNKNOWN']);
    expect(await outcome(replicas.call(callOf('none', { repeatable: false })))).toBe('UNAVAILABLE');
    await startReplica(async () => Buffer.from('back'), port);
    await eventually(async () => (await outcome(replicas.call(callOf('again', { repeatable: false })))) === 'back');
  });

  it('that are not there: also the calls that follow at once say why', async () => {
    const { address, kill } = await startReplica(hanging);
    await kill();
    const replicas = connect(address);
    for (let i = 0; i < 5; i++)
      await expect(replicas.call(callOf('none'))).rejects.toMatchObject({
        reason: 'UNAVAILABLE',
        cause: { message: expect.stringContaining('ECONNREFUSED') as string },
      });
  });

  it('that close every connection are tried again after pauses that grow', async () => {
    const random = jest.spyOn(Math, 'random').mockReturnValue(1);
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    closedInTheEnd(() => server.close());
    await once(server, 'listening');
    connect(`127.0.0.1:${(server.address() as AddressInfo).port}`);
    const pauses = () => new Set(timers.mock.calls.map(([, ms]) => ms));
    await eventually(() => pauses().isSupersetOf(new Set([100, 200, 400])));
    timers.mockRestore();
    random.mockRestore();
  });

  it('get the calls that fewest others are before', async () => {
    const slow = await startReplica(hanging);
    const quick = await startReplica(async () => Buffer.from('quick'));
    const replicas = connect(slow.address, quick.address);
    await Promise.race(Array.from({ length: 4 }, () => outcome(replicas.call(callOf('first')))));
    for (let i = 0; i < 100; i++) expect(await outcome(replicas.call(callOf('next')))).toBe('quick');
  });

  it('are drained and started again, one after the other, without one failed call', async () => {
    const answer: HandleCarried = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return Buffer.from('yes');
    };
    const running = [await startReplica(answer), await startReplica(answer)];
    const replicas = connect(...running.map(({ address }) => address));
    let stopped = false;
    const outcomes = new Map<unknown, number>();
    const load = Array.from({ length: 20 }, async () => {
      while (!stopped) {
        const result = await outcome(replicas.call(callOf('load', { repeatable: false })));
        outcomes.set(result, (outcomes.get(result) ?? 0) + 1);
      }
    });
    for (let round = 0; round < 2; round++) {
      for (const [i, { port, drain }] of running.entries()) {
        await drain();
        let served = false;
        running[i] = await startReplica((call) => {
          served = true;
          return answer(call);
        }, port);
        await eventually(() => served);
      }
    }
    stopped = true;
    await Promise.all(load);
    expect([...outcomes.keys()]).toEqual(['yes']);
  });
});
