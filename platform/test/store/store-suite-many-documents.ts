import { newId } from 'platform/core/ids.ts';
import { collection, insert, remove, type Filter, type FindOptions, type OpenStore } from 'platform/store/store.ts';

interface Entry {
  _id: string;
  organizationId: string;
  list: string;
  rank: number;
  tags: string[];
}
export const MANY = collection<Entry>('many', {
  scope: 'organization',
  columns: { _id: 'id', list: 'text', rank: 'number' },
  indexes: [{ fields: ['list'] }, { fields: ['_id'] }, { fields: ['tags'], elements: true }],
});

/** SQLite walks to a page with more than 5,000 documents before it. The server of other tests is slow. */
const ON_SQLITE = { count: 6_500, lists: 600 };
const ON_SERVER = { count: 1_100, lists: 40 };
const entry = (n: number, lists = 1): Entry => ({
  ...{ _id: newId(), organizationId: 'A', list: n % 2 ? 'common' : `l${n % lists}` },
  ...{ rank: n % 7, tags: n % 3 ? ['t'] : ['u', 't'] },
});

/** What every engine guarantees for reads of many documents: they are those of the same read of few. */
export function manyDocumentsSuite(opened: () => OpenStore): void {
  const idsOf = (found: readonly Entry[]): string[] => found.map(({ _id }) => _id);
  const find = async (filter: Filter<Entry>, options?: FindOptions<Entry>): Promise<string[]> =>
    idsOf(await opened().store.find('A', MANY, filter, options));

  async function addAll(): Promise<Entry[]> {
    const { count, lists } = opened().exclusive ? ON_SQLITE : ON_SERVER;
    const entries = Array.from({ length: count }, (_, n) => entry(n, lists));
    for (let from = 0; from < count; from += 500)
      await opened().platformStore.apply(entries.slice(from, from + 500).map((each) => insert(MANY, each)));
    return entries.sort((one, other) => (one._id < other._id ? -1 : 1));
  }

  describe('reads of many documents', () => {
    it('find, count and add up all that match, in their order, whatever is skipped', async () => {
      const entries = await addAll();
      const deep = entries.length - 300;
      const directions = opened().exclusive ? (['asc', 'desc'] as const) : (['desc'] as const);
      const lists = [...new Set(entries.map(({ list }) => list))];
      const filters: [Filter<Entry>, (entry: Entry) => boolean][] = [
        [{}, () => true],
        [{ list: 'common' }, ({ list }) => list === 'common'],
        [{ list: { in: lists } }, () => true],
        [{ list: { in: lists.slice(1) } }, ({ list }) => list !== lists[0]],
        [{ tags: { containsAny: ['u', 'x'] } }, ({ tags }) => tags.includes('u')],
        [{ tags: { containsAny: ['u', 't'] } }, () => true],
        [{ rank: 3 }, ({ rank }) => rank === 3],
        [{ _id: { in: idsOf(entries) } }, () => true],
        [{ _id: { gt: entries[9]!._id } }, ({ _id }) => _id > entries[9]!._id],
      ];
      for (const [filter, matches] of filters) {
        const wanted = entries.filter(matches);
        const ids = idsOf(wanted);
        expect(await find(filter)).toEqual(ids);
        expect(await opened().store.count('A', MANY, filter)).toBe(ids.length);
        expect(await opened().store.sum('A', MANY, filter, 'rank')).toBe(
          wanted.reduce((sum, { rank }) => sum + rank, 0),
        );
        for (const direction of directions) {
          const all = direction === 'asc' ? ids : ids.toReversed();
          for (const [skip, limit] of [
            [0, 700],
            [150, 20],
            [1_000, 300],
            [Math.max(0, ids.length - 400), 400],
            [ids.length, 9],
          ] as const)
            expect(await find(filter, { sort: [['_id', direction]], skip, limit })).toEqual(
              all.slice(skip, skip + limit),
            );
          const after = [all[30]!];
          expect(await find(filter, { sort: [['_id', direction]], after, skip: deep, limit: 20 })).toEqual(
            all.slice(deep + 31, deep + 51),
          );
          expect(await find(filter, { sort: [['_id', direction]], after, limit: 600 })).toEqual(all.slice(31, 631));
        }
      }
      const byRank = entries.toSorted((one, other) => other.rank - one.rank || (one._id > other._id ? -1 : 1));
      expect(await find({}, { sort: [['rank', 'desc']] })).toEqual(idsOf(byRank));
      expect(await find({}, { sort: [['rank', 'desc']], skip: deep, limit: 20 })).toEqual(
        idsOf(byRank.slice(deep, deep + 20)),
      );
    });

    it('never have a document twice, or one that does not match, although documents come and go', async () => {
      const entries = await addAll();
      let done = false;
      const changing = (async () => {
        for (let n = 0; !done && n < entries.length; n++)
          await opened().store.apply('A', [remove(MANY, { _id: entries[n]!._id }), insert(MANY, entry(n))]);
      })();
      const found = await opened().store.find('A', MANY, { rank: { lt: 5 } }, {});
      done = true;
      await changing;
      expect(new Set(idsOf(found)).size).toBe(found.length);
      expect(found.filter(({ rank }) => rank >= 5)).toEqual([]);
      expect(idsOf(found)).toEqual(idsOf(found).toSorted());
    });
  });
}
