import { DuplicateKeyError, ExpectationFailedError, insert, update, type OpenStore } from 'platform/store/store.ts';
import { idsOf, item, ITEMS, type Item } from './store-suite.ts';

const reasons = (results: PromiseSettledResult<void>[]): unknown[] =>
  results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
const times = (n: number, work: (i: number) => Promise<void>): Promise<PromiseSettledResult<void>[]> =>
  Promise.allSettled(Array.from({ length: n }, (_, i) => work(i)));

/** What every engine guarantees for concurrent writes. */
export function concurrencySuite(opened: () => OpenStore): void {
  const store = () => opened().store;

  describe('concurrent writes', () => {
    it('of 50 increments all count', async () => {
      await store().apply('A', [insert(ITEMS, item('1'))]);
      expect(
        reasons(await times(50, () => store().apply('A', [update(ITEMS, { _id: '1' }, { increment: { rank: 1 } })]))),
      ).toEqual([]);
      expect((await store().findOne('A', ITEMS, { _id: '1' }))!.rank).toBe(50);
    });
    it('of 50 compare-and-sets one succeeds', async () => {
      await store().apply('A', [insert(ITEMS, item('1'))]);
      const lost = reasons(
        await times(50, (i) => store().apply('A', [update(ITEMS, { _id: '1', text: '' }, { set: { text: `${i}` } })])),
      );
      expect(lost).toHaveLength(49);
      expect(lost.every((reason) => reason instanceof ExpectationFailedError)).toBe(true);
    });
    it('of two batches that each expect what the other changes one succeeds, also when an update changes nothing', async () => {
      for (let round = 0; round < 10; round++) {
        const [one, other] = [`${round}.1`, `${round}.2`] as const;
        await store().apply('A', [insert(ITEMS, item(one)), insert(ITEMS, item(other))]);
        const take = (mine: string, others: string) =>
          store().apply('A', [
            update(ITEMS, { _id: others, flag: false }, { set: { flag: false } }),
            update(ITEMS, { _id: mine }, { set: { flag: true } }),
          ]);
        const lost = reasons(await Promise.allSettled([take(one, other), take(other, one)]));
        expect(lost).toHaveLength(1);
        expect(lost[0]).toBeInstanceOf(ExpectationFailedError);
      }
    });
    it('of 20 inserts with the same unique key one succeeds', async () => {
      const lost = reasons(await times(20, (i) => store().apply('A', [insert(ITEMS, item(`${i}`, { key: 'same' }))])));
      expect(lost).toHaveLength(19);
      expect(lost.every((reason) => reason instanceof DuplicateKeyError)).toBe(true);
      expect(await store().count('A', ITEMS, { key: 'same' })).toBe(1);
    });
    it('a batch that fails half-way changes nothing, and the concurrent ones all apply', async () => {
      await store().apply('A', [insert(ITEMS, item('taken'))]);
      const results = await times(9, (i) =>
        store().apply('A', [
          insert(ITEMS, item(`${i}`)),
          update(ITEMS, { _id: 'taken' }, { increment: { rank: 1 } }),
          ...(i % 3 === 1 ? [insert(ITEMS, item(`x${i}`, { key: 'taken' }))] : []),
        ]),
      );
      expect(results.map(({ status }) => status === 'fulfilled')).toEqual([
        true,
        false,
        true,
        true,
        false,
        true,
        true,
        false,
        true,
      ]);
      expect(idsOf(await store().find('A', ITEMS, {}))).toEqual(['0', '2', '3', '5', '6', '8', 'taken']);
      expect((await store().findOne('A', ITEMS, { _id: 'taken' }))!.rank).toBe(6);
    });
    it('are read as whole batches or not at all, and as a whole once they are acknowledged', async () => {
      for (let round = 0; round < 20; round++) {
        const done = store().apply('A', [insert(ITEMS, item(`${round}a`)), insert(ITEMS, item(`${round}b`))]);
        const during = await Promise.all(Array.from({ length: 5 }, () => store().count('A', ITEMS, {})));
        expect(during.every((count) => count % 2 === 0)).toBe(true);
        await done;
        expect(await store().count('A', ITEMS, {})).toBe(2 * (round + 1));
      }
    });
    it('neither repeat nor skip documents on keyset pages', async () => {
      const before = Array.from({ length: 50 }, (_, i) => item(`old${i}`, { rank: i % 5 }));
      await store().apply(
        'A',
        before.map((each) => insert(ITEMS, each)),
      );
      const seen: Item[] = [];
      for (let page: Item[] | undefined, round = 0; page === undefined || page.length > 0; round++) {
        const last = seen.at(-1);
        page = await store().find(
          'A',
          ITEMS,
          {},
          { sort: [['rank', 'desc']], limit: 4, ...(last && { after: [last.rank, last._id] }) },
        );
        seen.push(...page);
        // Before and after the page that was just read.
        if (round < 30)
          await store().apply(
            'A',
            [9, 2, -1].map((rank) => insert(ITEMS, item(`new${round}.${rank}`, { rank }))),
          );
      }
      expect(new Set(idsOf(seen)).size).toBe(seen.length);
      expect(
        idsOf(seen)
          .filter((id) => id.startsWith('old'))
          .sort(),
      ).toEqual(idsOf(before).sort());
    });
  });
}
