import { join } from 'node:path';
import type { ServiceError } from 'platform/core/errors.ts';
import { eventually } from 'platform/service/test-end.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import { shardPool, openCounterShards, type CounterShards } from 'platform/jobs/counter-shards.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';

const log = makeLog('test', 'silent');
const alive = new AbortController().signal;

describe('shardPool', () => {
  it('gives no shard to two works of one organization at the same time, and uses every shard', async () => {
    const withShard = shardPool([3, 4, 5]);
    const busy = new Set<number>();
    const used = new Set<number>();
    await Promise.all(
      Array.from({ length: 50 }, () =>
        withShard('a', alive, async (shard) => {
          expect(busy.has(shard)).toBe(false);
          busy.add(shard);
          used.add(shard);
          await new Promise(setImmediate);
          busy.delete(shard);
        }),
      ),
    );
    expect([...used].sort()).toEqual([3, 4, 5]);
  });
  it('gives one shard to two organizations at the same time, and reuses a shard after its work failed', async () => {
    const withShard = shardPool([0]);
    await expect(withShard('a', alive, async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const gate = Promise.withResolvers<void>();
    const held = withShard('a', alive, () => gate.promise);
    expect(await withShard('b', alive, async (shard) => shard)).toBe(0);
    gate.resolve();
    await held;
  });
  it('does not run a work whose caller left while it waited, and runs the next one', async () => {
    const withShard = shardPool([0]);
    const [gate, leaving] = [Promise.withResolvers<void>(), new AbortController()];
    const held = withShard('a', alive, () => gate.promise);
    const done: string[] = [];
    const gone = withShard('a', leaving.signal, async () => done.push('gone')).catch(
      (error: ServiceError) => error.reason,
    );
    const next = withShard('a', alive, async () => done.push('next'));
    leaving.abort();
    gate.resolve();
    await Promise.all([held, next]);
    expect(await gone).toBe('CLIENT_GONE');
    expect(done).toEqual(['next']);
  });
});

describe('openCounterShards', () => {
  const folder = temporaryFolder();
  let open: OpenStore;
  beforeAll(async () => {
    open = { ...(await openSqliteStore(join(folder.path, 'a.sqlite'), [LEASES])), counterShards: 16 };
  });
  afterAll(async () => {
    await open.close();
    folder.remove();
  });
  const shardsUsedBy = async (counterShards: CounterShards): Promise<number[]> => {
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    const all = Array.from({ length: 8 }, () =>
      counterShards.withShard('a', alive, async (shard) => {
        seen.push(shard);
        await gate.promise;
      }),
    );
    gate.resolve();
    await Promise.all(all);
    return seen.sort((a, b) => a - b);
  };
  it('gives two processes different slots, lets a third share one, and frees a slot on close', async () => {
    const start = (owner: string) => openCounterShards(open, { owner, leaseMs: 60_000, log });
    const [one, two, three] = [await start('one'), await start('two'), await start('three')];
    const low = Array.from({ length: 8 }, (_, i) => i);
    const high = low.map((shard) => shard + 8);
    expect(await shardsUsedBy(one)).toEqual(low);
    expect(await shardsUsedBy(two)).toEqual(high);
    expect([low, high]).toContainEqual(await shardsUsedBy(three));
    await two.close();
    const four = await start('four');
    expect(await shardsUsedBy(four)).toEqual(high);
    for (const counterShards of [one, three, four]) await counterShards.close();
  });

  const BRIEF_MS = 300;
  /** The owners of the leases that have not expired. */
  const owners = async (): Promise<unknown[]> =>
    (await open.platformStore.find(LEASES, { until: { gt: await open.platformStore.now() } })).map(
      ({ owner }) => owner,
    );
  async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
    await eventually(condition);
  }

  it('leases a slot as soon as one is free, in a process that found none at its start', async () => {
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

  it('leases a slot again after an outage that was longer than the lease', async () => {
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
