import { join } from 'node:path';
import { LEASES } from 'platform/lease.ts';
import { makeLog } from 'platform/log.ts';
import { freeRows, openHotRows, type HotRows } from 'platform/store/hot-rows.ts';
import { openSqliteStore } from 'platform/store/sqlite.ts';
import { temporaryFolder } from 'platform/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';

const log = makeLog('test', 'silent');

describe('a free list of rows', () => {
  it('never gives one row to two works on one organization at once, and uses all of them', async () => {
    const take = freeRows([3, 4, 5]);
    const busy = new Set<number>();
    const used = new Set<number>();
    await Promise.all(Array.from({ length: 50 }, () => take('a', async (row) => {
      expect(busy.has(row)).toBe(false);
      busy.add(row);
      used.add(row);
      await new Promise(setImmediate);
      busy.delete(row);
    })));
    expect([...used].sort()).toEqual([3, 4, 5]);
  });
  it('lets organizations take the same row at once, and takes a row back from work that fails', async () => {
    const take = freeRows([0]);
    await expect(take('a', async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const gate = Promise.withResolvers<void>();
    const held = take('a', () => gate.promise);
    expect(await take('b', async (row) => row)).toBe(0);
    gate.resolve();
    await held;
  });
});

describe('slots of rows', () => {
  const folder = temporaryFolder();
  let open: OpenStore;
  beforeAll(async () => { open = { ...(await openSqliteStore(join(folder.path, 'a.sqlite'), [LEASES as never])), hotRows: 16 }; });
  afterAll(async () => {
    await open.close();
    folder.remove();
  });
  const rowsOf = async (hotRows: HotRows): Promise<number[]> => {
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    const all = Array.from({ length: 8 }, () => hotRows.take('a', async (row) => { seen.push(row); await gate.promise; }));
    gate.resolve();
    await Promise.all(all);
    return seen.sort((a, b) => a - b);
  };
  it('are apart for two processes, shared by a third, and free again when one closes', async () => {
    const start = (owner: string) => openHotRows(open, { owner, leaseMs: 60_000, log });
    const [one, two, three] = [await start('one'), await start('two'), await start('three')];
    const low = Array.from({ length: 8 }, (_, i) => i);
    const high = low.map((row) => row + 8);
    expect(await rowsOf(one)).toEqual(low);
    expect(await rowsOf(two)).toEqual(high);
    expect([low, high]).toContainEqual(await rowsOf(three));
    await two.close();
    const four = await start('four');
    expect(await rowsOf(four)).toEqual(high);
    for (const hotRows of [one, three, four]) await hotRows.close();
  });
});
