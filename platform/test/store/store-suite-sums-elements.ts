import { insert, remove, update, type Filter, type OpenStore } from 'platform/store/store.ts';
import { idsOf, item, ITEMS, type Item } from './store-suite.ts';

/** What every engine promises of the sum of a field, and of queries by the elements of a list. */
export function sumsAndElementsSuite(opened: () => OpenStore): void {
  const store = () => opened().store;

  describe('sums', () => {
    it('are those of the documents of one organization that match, and 0 of none', async () => {
      const ranks = [3, -5, 7, 0];
      await store().apply(
        'A',
        ranks.map((rank, place) => insert(ITEMS, item(`${place}`, { rank, group: place < 2 ? 'g' : 'h' }))),
      );
      await store().apply('B', [insert(ITEMS, item('4', { organizationId: 'B', rank: 100 }))]);
      const sum = (filter: Filter<Item>): Promise<number> => store().sum('A', ITEMS, filter, 'rank');
      expect(await Promise.all([sum({}), sum({ group: 'g' }), sum({ group: { in: ['g', 'h'] } })])).toEqual([5, -2, 5]);
      expect(await Promise.all([sum({ group: 'none' }), sum({ group: { in: [] } })])).toEqual([0, 0]);
    });

    it('are of numbers and of sound filters only', async () => {
      await expect(store().sum('A', ITEMS, {}, 'text')).rejects.toThrow(TypeError);
      await expect(store().sum('A', ITEMS, { text: undefined }, 'rank')).rejects.toThrow(TypeError);
    });
  });

  describe('counts across organizations', () => {
    it('go no further than they are asked', async () => {
      await store().apply(
        'A',
        Array.from({ length: 5 }, (_, place) => insert(ITEMS, item(`${place}`, { group: place < 3 ? 'g' : 'h' }))),
      );
      const count = (filter: Filter<Item>, limit?: number) => opened().platformStore.count(ITEMS, filter, { limit });
      expect(await Promise.all([count({}), count({}, 4), count({}, 9), count({ group: 'g' }, 2)])).toEqual([
        5, 4, 5, 2,
      ]);
    });
  });

  describe('documents found by the elements of a list', () => {
    const found = async (organizationId: string, tags: string[]): Promise<string[]> =>
      idsOf(await store().find(organizationId, ITEMS, { tags: { containsAny: tags } }));

    it('are those that have an element now, of one organization', async () => {
      await store().apply('A', [
        insert(ITEMS, item('1', { tags: ['a', 'b', 'a'] })),
        insert(ITEMS, item('2', { tags: ['b'] })),
        insert(ITEMS, item('3')),
      ]);
      await store().apply('B', [insert(ITEMS, item('4', { organizationId: 'B', tags: ['a'] }))]);
      expect([await found('A', ['a']), await found('A', ['a', 'b']), await found('B', ['a', 'b'])]).toEqual([
        ['1'],
        ['1', '2'],
        ['4'],
      ]);
      await store().apply('A', [
        update(ITEMS, { _id: '1' }, { set: { tags: ['c'] } }),
        update(ITEMS, { _id: '2' }, { set: { text: 'other' } }),
        update(ITEMS, { _id: '3' }, { set: { tags: ['a'] } }),
      ]);
      expect([await found('A', ['a']), await found('A', ['b']), await found('A', ['c'])]).toEqual([
        ['3'],
        ['2'],
        ['1'],
      ]);
      await store().apply('A', [remove(ITEMS, { _id: '3' }), update(ITEMS, { _id: '1' }, { set: { tags: [] } })]);
      expect([await found('A', ['a', 'c']), await found('A', ['b'])]).toEqual([[], ['2']]);
    });

    it('come in order and in pages, narrowed by other fields', async () => {
      const tags = (place: number): string[] => (place % 3 === 0 ? ['x'] : place % 3 === 1 ? ['y', 'x'] : ['z']);
      await store().apply(
        'A',
        Array.from({ length: 9 }, (_, place) =>
          insert(ITEMS, item(`${place}`, { tags: tags(place), rank: place % 2 })),
        ),
      );
      const filter = { tags: { containsAny: ['x', 'y'] } };
      const page = (skip: number) =>
        store()
          .find('A', ITEMS, filter, { sort: [['_id', 'desc']], limit: 2, skip })
          .then(idsOf);
      expect([await page(0), await page(2), await page(4)]).toEqual([
        ['7', '6'],
        ['4', '3'],
        ['1', '0'],
      ]);
      expect(idsOf(await store().find('A', ITEMS, { ...filter, rank: 1 }))).toEqual(['1', '3', '7']);
      expect(await store().count('A', ITEMS, { ...filter, _id: { in: ['0', '1', '2'] } })).toBe(2);
    });
  });
}
