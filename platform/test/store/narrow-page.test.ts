import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { idAtRank, type Lists } from 'platform/store/sqlite/narrow-page.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, remove, type OpenStore } from 'platform/store/store.ts';

/** Lists in memory that count how many ids were passed, and by how many statements. */
function listsOf(ids: Record<string, readonly string[]>, work: { statements: number; entries: number }): Lists {
  return {
    isBefore: (id, other) => id < other,
    idAfter(value, from, step) {
      work.statements++;
      work.entries += step;
      return ids[value]!.filter((id) => from === undefined || id > from)[step - 1];
    },
  };
}

const last = <T>(work: Generator<unknown, T>): T => {
  for (;;) {
    const next = work.next();
    if (next.done === true) return next.value;
  }
};
const text = (place: number): string => `${place}`.padStart(7, '0');

describe('the id at a place of merged lists', () => {
  it('is the one that sorting all of them finds', () => {
    const lengths = fc.array(fc.array(fc.nat(500), { maxLength: 60 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(lengths, fc.nat(400), fc.option(fc.nat(500)), (lists, before, start) => {
        const seen = new Set<number>();
        const ids = lists.map((list) => list.filter((id) => !seen.has(id) && seen.add(id)).sort((a, b) => a - b));
        const named = Object.fromEntries(ids.map((list, place) => [`${place}`, list.map(text)]));
        const from = start === null ? undefined : text(start);
        const all = ids.flat().map(text).filter((id) => from === undefined || id > from); // prettier-ignore
        const work = idAtRank(listsOf(named, { statements: 0, entries: 0 }), Object.keys(named), from, before + 1);
        expect(last(work)).toBe(all.sort()[before]);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([1, 2, 50])('passes few entries more than there are before it, when one of %d lists has nearly all', (n) => {
    const work = { statements: 0, entries: 0 };
    const ids = Object.fromEntries(
      Array.from({ length: n }, (_, list) => [
        `${list}`,
        Array.from({ length: list === 0 ? 100_000 : 100 }, (_, place) => text(place * n + list)),
      ]),
    );
    const found = last(idAtRank(listsOf(ids, work), Object.keys(ids), undefined, 90_000));
    expect(found).toBe(Object.values(ids).flat().sort()[89_999]);
    expect(work.entries).toBeLessThan(3 * 90_000);
    expect(work.statements).toBeLessThan(60 * n + 60);
  });
});

describe('a deep page for many listed values', () => {
  interface Entry {
    _id: string;
    organizationId: string;
    list: string;
  }
  const ENTRIES = collection<Entry>('entries', {
    scope: 'organization',
    columns: { _id: 'id', list: 'id' },
    indexes: [{ fields: ['list'] }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'pages-'));
  const lists = Array.from({ length: 40 }, () => randomUUID());
  const hidden = randomUUID();
  // The first list has half of the entries; one list in ten is hidden.
  const entries = Array.from({ length: 12_000 }, (_, place): Entry => {
    const list = place % 10 === 0 ? hidden : place % 2 === 0 ? lists[0]! : lists[place % 40]!;
    return { _id: randomUUID(), organizationId: 'A', list };
  });
  let opened: OpenStore;
  beforeAll(async () => {
    opened = await openSqliteStore(join(folder, 'a.sqlite'), [ENTRIES]);
    await opened.store.apply('A', entries.map((entry) => insert(ENTRIES, entry))); // prettier-ignore
    await opened.store.apply('B', [insert(ENTRIES, { _id: randomUUID(), organizationId: 'B', list: hidden })]);
  });
  afterAll(async () => {
    await opened.close();
    rmSync(folder, { recursive: true });
  });
  const page = async (direction: 'asc' | 'desc', skip: number, limit: number, after?: string): Promise<string[]> => {
    const options = {
      sort: [['_id', direction]],
      skip,
      limit,
      ...(after !== undefined && { after: [after] }),
    } as const;
    return (await opened.store.find('A', ENTRIES, { list: { in: lists } }, options)).map(({ _id }) => _id);
  };
  const visible = (direction: 'asc' | 'desc'): string[] => {
    const ids = entries.filter(({ list }) => list !== hidden).map(({ _id }) => _id).sort(); // prettier-ignore
    return direction === 'asc' ? ids : ids.reverse();
  };

  it.each(['asc', 'desc'] as const)(
    'has the entries at its place, sorted %s, and is empty past the end',
    async (way) => {
      const all = visible(way);
      for (const [skip, limit] of [
        [0, 300],
        [1, 300],
        [300, 20],
        [9_000, 100],
        [all.length - 5, 100],
      ] as const)
        // prettier-ignore
        expect(await page(way, skip, limit)).toEqual(all.slice(skip, skip + limit));
      expect(await page(way, 400, 300, all[2_000])).toEqual(all.slice(2_401, 2_701));
      expect(await page(way, all.length, 10)).toEqual([]);
      expect(await page(way, 99_999, 10)).toEqual([]);
    },
  );

  it('gives way: a neighbour is answered while it is looked for, many times', async () => {
    let done = false;
    const deep = page('desc', 9_000, 300).then(() => (done = true));
    for (let reads = 0; reads < 3; reads++) {
      await new Promise((resolve) => void setImmediate(resolve));
      expect(await opened.store.count('B', ENTRIES, {})).toBe(1);
      expect(done).toBe(false);
    }
    await deep;
  });

  it('is full, although entries of it are removed while it is looked for', async () => {
    const removed = visible('desc').slice(0, 200);
    const [found] = await Promise.all([
      page('desc', 0, 300),
      opened.store.apply('A', removed.map((_id) => remove(ENTRIES, { _id }))), // prettier-ignore
    ]);
    expect(found).toHaveLength(300);
  });

  it('is short, and comes to an end, although entries of it are removed all the time', async () => {
    let removed = 0;
    let done = false;
    const removing = (async () => {
      while (!done) {
        const [first] = await page('desc', 0, 1);
        await opened.store.apply('A', [remove(ENTRIES, { _id: first! })]);
        removed++;
      }
    })();
    const found = await page('desc', 0, 300);
    done = true;
    await removing;
    expect(removed).toBeGreaterThan(0);
    expect(found.length).toBeGreaterThan(200);
    expect(found).toEqual(found.toSorted().reverse());
  });
});
