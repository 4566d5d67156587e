import type { HandleCarried } from 'platform/rpc/call-carrier.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startNameServer } from './name-server.ts';
import { callOf, connectByNames, outcome, startReplica } from './replica-server.ts';

const LOOPS = 20;

describe('replicas that one name stands for, under load', () => {
  /** A replica on an address of its own, which counts the calls that it serves. */
  async function startCounting(host: string, port?: number) {
    const served = { calls: 0 };
    const answer: HandleCarried = async () => {
      served.calls++;
      await new Promise((resolve) => setImmediate(resolve));
      return Buffer.from('yes');
    };
    return Object.assign(await startReplica(answer, port, host), { served, host });
  }
  type Replica = Awaited<ReturnType<typeof startCounting>>;

  /** Calls in loops, none of which may be repeated. */
  function startLoad(replicas: ReturnType<typeof connectByNames>) {
    const outcomes = new Map<unknown, number>();
    let stopped = false;
    const loops = Array.from({ length: LOOPS }, async () => {
      while (!stopped) {
        const result = await outcome(replicas.call(callOf('load', { repeatable: false })));
        outcomes.set(result, (outcomes.get(result) ?? 0) + 1);
      }
    });
    return {
      outcomes,
      async stop() {
        stopped = true;
        await Promise.all(loops);
      },
    };
  }

  /** @param everyMs how often the name is resolved while all replicas are connected */
  async function start(everyMs: number) {
    const names = await startNameServer();
    const first = await startCounting('127.0.0.2');
    const second = await startCounting('127.0.0.3', first.port);
    names.addresses = [first.host, second.host];
    const replicas = connectByNames([`replicas.test:${first.port}`], { resolve: names.resolve, everyMs });
    await eventually(async () => (await outcome(replicas.call(callOf('first')))) === 'yes');
    return { names, first, second, load: startLoad(replicas) };
  }
  /** Resolves when the replica has served as many calls as the others since now, with some tolerance. */
  async function untilItHasItsShare(one: Replica, others: readonly Replica[]): Promise<void> {
    const before = [one, ...others].map(({ served }) => served.calls);
    await eventually(() => {
      const [own, ...rest] = [one, ...others].map(({ served }, i) => served.calls - before[i]!);
      return own! > 1_000 && own! > Math.max(...rest) / 2;
    });
  }

  it('one that is added gets its share when the name is resolved again; no call fails', async () => {
    const { names, first, second, load } = await start(100);
    await untilItHasItsShare(second, [first]);
    const third = await startCounting('127.0.0.4', first.port);
    names.addresses.push(third.host);
    await untilItHasItsShare(third, [first, second]);
    await load.stop();
    expect([...load.outcomes.keys()]).toEqual(['yes']);
  });

  it('all are replaced, one after the other, by ones with other addresses: no call fails', async () => {
    // longer than the test: the name is resolved because a replica goes
    const { names, first, second, load } = await start(3_600_000);
    await untilItHasItsShare(second, [first]);
    const old = [first, second];
    const successors: Replica[] = [];
    for (const [i, replica] of old.entries()) {
      const successor = await startCounting(`127.0.0.${4 + i}`, first.port);
      names.addresses = names.addresses.map((host) => (host === replica.host ? successor.host : host));
      await replica.drain();
      await eventually(() => successor.served.calls > 0);
      successors.push(successor);
    }
    const last = old.map(({ served }) => served.calls);
    await untilItHasItsShare(successors[1]!, [successors[0]!]);
    expect(old.map(({ served }) => served.calls)).toEqual(last);
    await load.stop();
    expect([...load.outcomes.keys()]).toEqual(['yes']);
  });

  it('one is killed: only calls that it had fail, and each is told that its outcome is unknown', async () => {
    const { names, first, second, load } = await start(3_600_000);
    await untilItHasItsShare(second, [first]);
    names.addresses = [first.host];
    await second.kill();
    const { calls } = first.served;
    await eventually(() => first.served.calls > calls + 1_000);
    await load.stop();
    const { yes, OUTCOME_UNKNOWN: unknown = 0, ...others } = Object.fromEntries(load.outcomes);
    expect(others).toEqual({});
    expect(yes).toBeGreaterThan(1_000);
    expect(unknown).toBeLessThanOrEqual(LOOPS);
  });
});
