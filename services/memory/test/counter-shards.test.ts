import { join } from 'node:path';
import type { ServiceError } from 'platform/core/errors.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import { shardPool, openCounterShards, type CounterShards } from '../src/counter-shards.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';

const log = makeLog('test', 'silent');
const alive = new AbortController().signal;

describe('a free list of rows', () => {
  it('never gives one row to two works on one organization at once, and uses all of them', async () => {
    const take = shardPool([3, 4, 5]);
    const busy = new Set<number>();
    const used = new Set<number>();
    await Promise.all(
      Array.from({ length: 50 }, () =>
        take('a', alive, async (row) => {
          expect(busy.has(row)).toBe(false);
          busy.add(row);
          used.add(row);
          await new Promise(setImmediate);
          busy.delete(row);
        }),
      ),
    );
    expect([...used].sort()).toEqual([3, 4, 5]);
  });
  it('lets organizations take the same row at once, and takes a row back from work that fails', async () => {
    const take = shardPool([0]);
    await expect(take('a', alive, async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const gate = Promise.withResolvers<void>();
    const held = take('a', alive, () => gate.promise);
    expect(await take('b', alive, async (row) => row)).toBe(0);
    gate.resolve();
    await held;
  });
  it('does nothing for a caller that went away while it waited, and goes on with the next', async () => {
    const take = shardPool([0]);
    const [gate, leaving] = [Promise.withResolvers<void>(), new AbortController()];
    const held = take('a', alive, () => gate.promise);
    const done: string[] = [];
    const gone = take('a', leaving.signal, async () => done.push('gone')).catch((error: ServiceError) => error.reason);
    const next = take('a', alive, async () => done.push('next'));
    leaving.abort();
    gate.resolve();
    await Promise.all([held, next]);
    expect(await gone).toBe('CLIENT_GONE');
    expect(done).toEqual(['next']);
  });
});

describe('slots of rows', () => {
  const folder = temporaryFolder();
  let open: OpenStore;
  beforeAll(async () => {
    open = { ...(await openSqliteStore(join(folder.path, 'a.sqlite'), [LEASES])), counterShards: 16 };
  });
  afterAll(async () => {
    await open.close();
    folder.remove();
  });
  const rowsOf = async (counterShards: CounterShards): Promise<number[]> => {
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    const all = Array.from({ length: 8 }, () =>
      counterShards.withShard('a', alive, async (row) => {
        seen.push(row);
        await gate.promise;
      }),
    );
    gate.resolve();
    await Promise.all(all);
    return seen.sort((a, b) => a - b);
  };
  it('are apart for two processes, shared by a third, and free again when one closes', async () => {
    const start = (owner: string) => openCounterShards(open, { owner, leaseMs: 60_000, log });
    const [one, two, three] = [await start('one'), await start('two'), await start('three')];
    const low = Array.from({ length: 8 }, (_, i) => i);
    const high = low.map((row) => row + 8);
    expect(await rowsOf(one)).toEqual(low);
    expect(await rowsOf(two)).toEqual(high);
    expect([low, high]).toContainEqual(await rowsOf(three));
    await two.close();
    const four = await start('four');
    expect(await rowsOf(four)).toEqual(high);
    for (const counterShards of [one, three, four]) await counterShards.close();
  });

  const BRIEF_MS = 300;
  /** Who has a slot, by the leases that have not run out. */
  const owners = async (): Promise<unknown[]> =>
    (await open.platformStore.find(LEASES, { until: { gt: await open.platformStore.now() } })).map(
      ({ owner }) => owner,
    );
  async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  it('are asked for until there is one, by a process that found none', async () => {
    const first = await Promise.all([
      openCounterShards(open, { owner: 'five', leaseMs: 60_000, log }),
      openCounterShards(open, { owner: 'six', leaseMs: 60_000, log }),
    ]);
    const late = await openCounterShards(open, { owner: 'seven', leaseMs: BRIEF_MS, log });
    expect(await owners()).not.toContain('seven');
    await first[0].close();
    await until(async () => (await owners()).includes('seven'));
    await late.close();
    expect(await owners()).toEqual(['six']);
    await first[1].close();
  });

  it('are leased again after an outage that was longer than the lease', async () => {
    let failed = 0;
    let down = false;
    const now = async () => {
      if (!down) return open.platformStore.now();
      failed++;
      throw new Error('down');
    };
    let lost = 0;
    const platformStore = { ...open.platformStore, now };
    const counterShards = await openCounterShards(
      { counterShards: 16, platformStore },
      { owner: 'eight', leaseMs: BRIEF_MS, log: { ...log, warn: () => lost++ } },
    );
    down = true;
    await until(() => lost > 0);
    const before = failed;
    await until(() => failed > before);
    expect(await owners()).toEqual([]);
    down = false;
    await until(async () => (await owners()).includes('eight'));
    await counterShards.close();
    expect(await owners()).toEqual([]);
  });
});
