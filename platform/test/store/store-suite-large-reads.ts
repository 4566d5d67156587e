import type { ServiceError } from 'platform/core/errors.ts';
import { collection, insert, type FindOptions, type OpenStore } from 'platform/store/store.ts';
import { idsOf, item, ITEMS, type Item } from './store-suite.ts';

const LARGE = 100_000;

interface Note {
  _id: string;
  organizationId: string;
  rank: number;
  text: string;
}
export const NOTES = collection<Note>('notes', { scope: 'organization', columns: { text: 'long' } });
const note = (_id: string, text: string): Note => ({ _id, organizationId: 'A', rank: Number(_id), text });

/** What every engine guarantees for reads of large documents. */
export function largeReadsSuite(opened: () => OpenStore): void {
  const store = () => opened().store;
  const add = (...items: Item[]) => opened().platformStore.apply(items.map((each) => insert(ITEMS, each)));
  const find = (options: FindOptions<Item> = {}) => store().find('A', ITEMS, {}, options);
  /** The bytes that the error of a read which must not fit names. */
  async function bytesOf(read: Promise<unknown>): Promise<number> {
    const error: unknown = await read.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ServiceError', reason: 'REPLY_TOO_LARGE' });
    return Number((error as ServiceError).facts.bytes);
  }

  describe('large reads', () => {
    it('are refused above maxBytes; the error says how many bytes are enough', async () => {
      const written = Array.from({ length: 30 }, (_, i) => item(`${100 + i}`, { text: 'é'.repeat(LARGE / 2) }));
      await add(...written, item('small'));
      const bytes = await bytesOf(find({ maxBytes: 30 * LARGE - 1 }));
      expect(bytes).toBeGreaterThan(30 * LARGE);
      expect(bytes).toBeLessThan(31 * LARGE);
      expect(await bytesOf(find({ maxBytes: bytes - 1 }))).toBe(bytes);
      expect(await find({ maxBytes: bytes })).toEqual([...written, item('small')]);
      expect(await find({ maxBytes: Infinity })).toEqual([...written, item('small')]);
    });
    it('of one document are refused, too', async () => {
      await add(item('1', { text: 'x'.repeat(LARGE) }));
      const bytes = await bytesOf(store().findOne('A', ITEMS, { _id: '1' }, { maxBytes: LARGE }));
      expect(await store().findOne('A', ITEMS, { _id: '1' }, { maxBytes: bytes })).toMatchObject({ _id: '1' });
      expect(await store().findOne('A', ITEMS, { _id: '2' }, { maxBytes: 0 })).toBeUndefined();
    });
    it('come without a long text that is omitted, whatever its size', async () => {
      const written = [note('1', 'x'), note('2', 'x'.repeat(LARGE))];
      await opened().platformStore.apply(written.map((each) => insert(NOTES, each)));
      const omit = ['text'] as const;
      const bare = written.map(({ text: _, ...rest }) => rest);
      expect(await store().find('A', NOTES, {}, { omit })).toEqual(bare);
      expect(await store().find('A', NOTES, { rank: 1 }, { omit, limit: 1 })).toEqual([bare[0]]);
      expect(await store().find('A', NOTES, {})).toEqual(written);
    });
    it('count the documents of the page alone', async () => {
      await add(...Array.from({ length: 9 }, (_, i) => item(`${i}`, { text: i < 6 ? 'x'.repeat(LARGE) : '' })));
      const sort = [['_id', 'desc']] as const;
      expect(idsOf(await find({ sort, limit: 3, maxBytes: LARGE }))).toEqual(['8', '7', '6']);
      expect(idsOf(await find({ sort, after: ['9'], limit: 4, maxBytes: 2 * LARGE }))).toEqual(['8', '7', '6', '5']);
      expect(await bytesOf(find({ sort, skip: 3, limit: 3, maxBytes: LARGE }))).toBeGreaterThan(3 * LARGE);
    });
    it('give way: a neighbour reads many times during the large reads of one organization', async () => {
      await add(
        ...Array.from({ length: 20 }, (_, i) => item(`${i}`, { text: 'x'.repeat(LARGE) })),
        item('b', { organizationId: 'B', text: 'y'.repeat(LARGE) }),
      );
      let done = 0;
      const all = Promise.all(
        Array.from({ length: 10 }, async () => {
          expect(await find({ maxBytes: 21 * LARGE })).toHaveLength(20);
          done++;
        }),
      );
      for (let reads = 0; reads < 3; reads++) {
        await new Promise((resolve) => void setImmediate(resolve));
        expect(await store().findOne('B', ITEMS, { _id: 'b' }, { maxBytes: 2 * LARGE })).toMatchObject({ _id: 'b' });
        expect(done).toBeLessThan(10);
      }
      await all;
    });
    it.each([-1, NaN, '1'])('reject maxBytes %j', async (maxBytes) => {
      await expect(find({ maxBytes: maxBytes as number })).rejects.toThrow(TypeError);
    });
  });
}
