import { insert, type Filter, type OpenStore } from 'platform/store/store.ts';
import { item, ITEMS, type Item } from './store-suite.ts';

/** What every engine promises of the sum of a field. */
export function sumsSuite(opened: () => OpenStore): void {
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
      await expect(store().sum('A', ITEMS, { text: undefined } as never, 'rank')).rejects.toThrow(TypeError);
    });
  });
}
