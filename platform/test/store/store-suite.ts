import {
  collection,
  DuplicateKeyError,
  ExpectationFailedError,
  insert,
  remove,
  update,
  type Collection,
  type Expectation,
  type Filter,
  type OpenStore,
} from 'platform/store/store.ts';
import { concurrencySuite } from './store-suite-concurrency.ts';
import { fewValuesSuite, JOBS } from './store-suite-few-values.ts';
import { largeReadsSuite, NOTES } from './store-suite-large-reads.ts';
import { MANY, manyDocumentsSuite } from './store-suite-many-documents.ts';
import { sumsAndElementsSuite } from './store-suite-sums-elements.ts';

export interface Item {
  _id: string;
  organizationId: string;
  group: string;
  key: string;
  rank: number;
  text: string;
  flag: boolean;
  note?: string | null;
  parts: { name: string }[];
  tags?: string[];
}
export interface Message {
  _id: string;
  topic: string;
}

const TAGS = { fields: ['tags'], elements: true } as const;
export const ITEMS = collection<Item>('items', {
  scope: 'organization',
  columns: { rank: 'number' },
  indexes: [{ fields: ['group', 'key'], unique: true }, { fields: ['group', 'rank'] }, TAGS],
  platformIndexes: [{ fields: ['rank'] }],
});
export const MESSAGES = collection<Message>('messages', { scope: 'platform', indexes: [{ fields: ['topic'] }] });
const SEATS = collection<{ _id: string; organizationId: string; name: string }>('seats', {
  scope: 'organization',
  platformIndexes: [{ fields: ['name'], unique: true }],
});

export const item = (_id: string, rest: Partial<Item> = {}): Item => ({
  _id,
  organizationId: 'A',
  group: 'g',
  key: _id,
  rank: 0,
  text: '',
  flag: false,
  parts: [{ name: 'p' }],
  ...rest,
});
export const idsOf = (documents: readonly { _id: string }[]): string[] => documents.map(({ _id }) => _id);
/** A store of one engine, for the suite to open and to empty. */
export interface TestStore {
  open(collections: readonly Collection<never>[]): Promise<OpenStore>;
  /** Removes all documents. The store is closed then. */
  empty(): Promise<void>;
}

/** What every engine of the store port promises. */
export function storeSuite(name: string, testStore: TestStore): void {
  describe(`document store on ${name}`, () => {
    let opened: OpenStore;
    const open = async () => (opened = await testStore.open([ITEMS, MESSAGES, SEATS, NOTES, JOBS, MANY]));
    beforeEach(open);
    afterEach(() => opened.close().then(testStore.empty));
    const store = () => opened.store;
    const platformStore = () => opened.platformStore;
    const add = (...items: Item[]) => platformStore().apply(items.map((each) => insert(ITEMS, each)));
    const found = async (filter: Filter<Item>) => idsOf(await store().find('A', ITEMS, filter));

    describe('documents', () => {
      it('are read as they were written; null and absent stay different', async () => {
        const written = [item('1', { note: null }), item('2')];
        await add(...written);
        expect(await store().find('A', ITEMS, {})).toStrictEqual(written);
      });
      it.each([
        ['a quote', `'"\`); DROP TABLE items; --`],
        ['NUL', 'a\u0000b'],
        ['astral text', '😀\u{10FFFF}'],
        ['line ends', 'a\r\n\u2028b'],
        ['a backslash', '\\u0041\\'],
        ['JSON', '{"$ref":"#","$id":"y","_bsontype":"ObjectId","n\\u0000":1}'],
        ['an empty text', ''],
        ['a long text', 'é'.repeat(300_000)],
      ])('with %s are stored, found and distinguished', async (_, text) => {
        await add(
          item('1', { text, key: `k${text}` }),
          item('2', { text: `${text}\u0000`, key: `k${text}\u0000` }),
          item('3', { text: `${text}x` }),
        );
        expect(await found({ text })).toEqual(['1']);
        expect(await found({ text: { in: [text, 'other'] } })).toEqual(['1']);
        expect((await store().findOne('A', ITEMS, { group: 'g', key: `k${text}` }))!.text).toBe(text);
      });
      it.each([
        ['undefined', { text: undefined }],
        ['a Date', { text: new Date() }],
        ['NaN', { rank: NaN }],
        ['a dot in a name', { 'a.b': 1 }],
        ['a Map', { parts: [new Map()] }],
        ['a field name that is special in BSON', { parts: [{ name: 'p', _bsontype: 'ObjectId' }] }],
        ['no _id', { _id: '' }],
        ['the reserved field for the version', { shape: 2 }],
        ['the reserved field for the count of updates', { writes: 1 }],
        ['no organization', { organizationId: '' }],
        ['null in a unique field', { key: null }],
        ['a list in a unique field', { key: [] }],
      ])('are rejected with %s', async (_, bad) => {
        await expect(platformStore().apply([insert(ITEMS, { ...item('1'), ...bad } as Item)])).rejects.toThrow(
          TypeError,
        );
        expect(await platformStore().count(ITEMS, {})).toBe(0);
      });
      it('and their indexes are there after the store is opened again', async () => {
        await add(item('1'), item('2'));
        await opened.close();
        const { store: again } = await open();
        expect(idsOf(await again.find('A', ITEMS, {}))).toEqual(['1', '2']);
        await expect(again.apply('A', [insert(ITEMS, item('3', { key: '1' }))])).rejects.toThrow(DuplicateKeyError);
      });
    });

    describe('filters', () => {
      beforeEach(() =>
        add(
          item('1', { rank: 1, text: 'a', flag: true, note: 'x', tags: ['a', 'b'] }),
          item('2', { rank: 2, text: 'b', note: null, tags: [] }),
          item('3', { rank: 3, text: 'c', tags: ['b', "it's"] }),
          item('4', { rank: -1.5, text: 'd', flag: true, note: 'y' }),
        ),
      );
      it.each<[Filter<Item>, string[]]>([
        [{}, ['1', '2', '3', '4']],
        [{ rank: 2 }, ['2']],
        [{ rank: -1.5 }, ['4']],
        [{ rank: 2, text: 'c' }, []],
        [{ _id: '3' }, ['3']],
        [{ _id: { in: ['4', '1', '9'] } }, ['1', '4']],
        [{ flag: true }, ['1', '4']],
        [{ flag: false }, ['2', '3']],
        [{ flag: { ne: true } }, ['2', '3']],
        [{ flag: { in: [false] } }, ['2', '3']],
        [{ note: null }, ['2', '3']],
        [{ note: { ne: null } }, ['1', '4']],
        [{ note: { ne: 'x' } }, ['2', '3', '4']],
        [{ note: { gt: '' } }, ['1', '4']],
        [{ text: { in: [] } }, []],
        [{ text: { in: ['b'] } }, ['2']],
        [{ text: { in: ['b'], gt: 'b' } }, []],
        [{ _id: { in: ['3'] } }, ['3']],
        [{ note: { in: ['x'] } }, ['1']],
        [{ tags: { containsAny: ['b'] } }, ['1', '3']],
        [{ tags: { containsAny: ['a', 'b', 'x'] } }, ['1', '3']],
        [{ tags: { containsAny: ["it's"] }, rank: 3 }, ['3']],
        [{ tags: { containsAny: ['x'] } }, []],
        [{ tags: { containsAny: [] } }, []],
        [{ rank: { in: [1, 3, 7] } }, ['1', '3']],
        [{ rank: { gt: 1 } }, ['2', '3']],
        [{ rank: { gte: 1, lt: 3 } }, ['1', '2']],
        [{ rank: { lte: 1 } }, ['1', '4']],
        [{ text: { gt: 'b' } }, ['3', '4']],
      ])('%j', async (filter, ids) => {
        expect(await found(filter)).toEqual(ids);
        expect(await store().count('A', ITEMS, filter)).toBe(ids.length);
        expect((await store().findOne('A', ITEMS, filter))?._id).toBe(ids[0]);
      });
      it.each([
        ['undefined', { text: undefined }],
        ['an undefined _id', { _id: undefined }],
        ['an undefined organization', { organizationId: undefined }],
        ['a number in containsAny', { tags: { containsAny: [1] } }],
        ['undefined in containsAny', { tags: { containsAny: [undefined] } }],
        ['no list in containsAny', { tags: { containsAny: 'a' } }],
        ['undefined in a list', { text: { in: [undefined] } }],
        ['null in a list', { text: { in: [null] } }],
        ['a text in place of a list', { text: { in: 'a' } }],
        ['undefined in a range', { text: { gt: undefined } }],
        ['null in a range', { text: { gt: null } }],
        ['an unknown operator', { text: { where: '1' } }],
        ['no operator', { text: {} }],
        ['a list', { text: ['a'] }],
        ['SQL in a name', { 'a") OR true --': 1 }],
      ])('with %s are rejected by every method', async (_, bad) => {
        const filter = bad as Filter<Item>;
        await expect(store().find('A', ITEMS, filter)).rejects.toThrow(TypeError);
        await expect(store().findOne('A', ITEMS, filter)).rejects.toThrow(TypeError);
        await expect(store().count('A', ITEMS, filter)).rejects.toThrow(TypeError);
        await expect(platformStore().find(ITEMS, filter)).rejects.toThrow(TypeError);
        await expect(store().apply('A', [remove(ITEMS, { _id: '1', ...filter } as Expectation<Item>)])).rejects.toThrow(
          TypeError,
        );
        expect(await store().count('A', ITEMS, {})).toBe(4);
      });
    });

    describe('order and pages', () => {
      it('sorts text by its UTF-8 bytes', async () => {
        await add(...['😀', '～', 'z', 'Z', 'é', ''].map((text, place) => item(`${place}`, { text })));
        expect((await store().find('A', ITEMS, {}, { sort: [['text', 'asc']] })).map(({ text }) => text)).toEqual([
          '',
          'Z',
          'z',
          'é',
          '～',
          '😀',
        ]);
      });
      it.each([
        ['asc', ['a1', 'b1', 'c1', 'a2', 'b2', 'c2']],
        ['desc', ['c2', 'b2', 'a2', 'c1', 'b1', 'a1']],
      ] as const)('orders documents that sort alike by _id, %s like the last sort field', async (direction, ids) => {
        await add(...['b2', 'a1', 'c1', 'a2', 'c2', 'b1'].map((_id) => item(_id, { rank: Number(_id[1]) })));
        expect(idsOf(await store().find('A', ITEMS, {}, { sort: [['rank', direction]] }))).toEqual(ids);
        expect(idsOf(await store().find('A', ITEMS, {}, { sort: [['rank', direction]], skip: 2, limit: 3 }))).toEqual(
          ids.slice(2, 5),
        );
      });
      it('sorts by _id by default, and in the direction that a sort by _id names', async () => {
        await add(item('b'), item('c'), item('a'));
        expect(await found({})).toEqual(['a', 'b', 'c']);
        const sort = [['rank', 'asc'] as const, ['_id', 'desc'] as const];
        expect(idsOf(await store().find('A', ITEMS, {}, { sort }))).toEqual(['c', 'b', 'a']);
        expect(idsOf(await store().find('A', ITEMS, {}, { after: ['a'] }))).toEqual(['b', 'c']);
      });
      it.each([
        ['asc', 'asc'],
        ['desc', 'desc'],
        ['asc', 'desc'],
        ['desc', 'asc'],
      ] as const)('pages by keyset through many equal values, rank %s, text %s', async (first, second) => {
        const all = Array.from({ length: 60 }, (_, i) =>
          item(`i${i}`, { rank: (i * 7) % 4, text: `${i % 3}`, flag: i % 2 === 0 }),
        );
        await add(...all, item('other', { organizationId: 'B' }));
        const sort = [
          ['rank', first],
          ['flag', 'asc'],
          ['text', second],
        ] as const;
        const whole = await store().find('A', ITEMS, {}, { sort });
        const paged: Item[] = [];
        for (let page: Item[] | undefined; page === undefined || page.length === 7;) {
          const last = paged.at(-1);
          page = await store().find(
            'A',
            ITEMS,
            {},
            { sort, limit: 7, ...(last && { after: [last.rank, last.flag, last.text, last._id] }) },
          );
          paged.push(...page);
        }
        expect(paged).toEqual(whole);
        expect(paged).toHaveLength(60);
      });
      it.each([
        { limit: 0 },
        { limit: 1.5 },
        { skip: -1 },
        { after: [] },
        { after: [null] },
        { after: ['a', 'b'] },
        { sort: [['a b', 'asc']] },
        { sort: [['rank', 'up']] },
      ])('rejects %j', async (options) => {
        await expect(store().find('A', ITEMS, {}, options as never)).rejects.toThrow(TypeError);
      });
    });

    describe('organizations', () => {
      const foreign = item('b1', { organizationId: 'B', text: 'secret' });
      beforeEach(() => add(item('a1'), foreign));
      it('never read a document of another organization', async () => {
        expect(await found({})).toEqual(['a1']);
        expect(await store().findOne('A', ITEMS, { _id: 'b1' })).toBeUndefined();
        expect(await store().count('A', ITEMS, { text: 'secret' })).toBe(0);
        await expect(store().find('A', ITEMS, { organizationId: 'B' })).rejects.toThrow(TypeError);
      });
      it.each([
        ['update', (options: object) => update(ITEMS, { _id: 'b1' }, { set: { text: 'mine' } }, options)],
        ['remove', (options: object) => remove(ITEMS, { _id: 'b1' }, options)],
      ])('never %s a document of another organization', async (_, op) => {
        await expect(store().apply('A', [op({})])).rejects.toThrow(ExpectationFailedError);
        await store().apply('A', [op({ optional: true })]);
        expect(await store().findOne('B', ITEMS, { _id: 'b1' })).toEqual(foreign);
      });
      it('never insert a document into another organization or move one there', async () => {
        await expect(store().apply('A', [insert(ITEMS, item('x', { organizationId: 'B' }))])).rejects.toThrow(
          TypeError,
        );
        await expect(
          store().apply('A', [update(ITEMS, { _id: 'a1' }, { set: { organizationId: 'B' } })]),
        ).rejects.toThrow(TypeError);
        expect(await platformStore().count(ITEMS, { organizationId: 'B' })).toBe(1);
      });
      it.each(['', undefined, null])('an organization id %j is rejected', async (nobody) => {
        const organizationId = nobody as string;
        await expect(store().find(organizationId, ITEMS, {})).rejects.toThrow(TypeError);
        await expect(store().findOne(organizationId, ITEMS, {})).rejects.toThrow(TypeError);
        await expect(store().count(organizationId, ITEMS, {})).rejects.toThrow(TypeError);
        await expect(store().apply(organizationId, [remove(ITEMS, { _id: 'a1' })])).rejects.toThrow(TypeError);
      });
      it('cannot read a platform collection, but a batch may write one', async () => {
        await expect(store().find('A', MESSAGES as never, {})).rejects.toThrow(TypeError);
        await store().apply('A', [insert(ITEMS, item('a2')), insert(MESSAGES, { _id: 'm', topic: 't' })]);
        expect(await platformStore().find(MESSAGES, { topic: 't' })).toEqual([{ _id: 'm', topic: 't' }]);
      });
      it('may use the same unique key, and PlatformStore reads the documents of all', async () => {
        await store().apply('B', [insert(ITEMS, item('b2', { organizationId: 'B', key: 'a1' }))]);
        expect(idsOf(await platformStore().find(ITEMS, { key: 'a1' }))).toEqual(['a1', 'b2']);
      });
      it('share the keys of a unique platform index', async () => {
        await store().apply('A', [insert(SEATS, { _id: '1', organizationId: 'A', name: 'n' })]);
        await expect(
          store().apply('B', [insert(SEATS, { _id: '2', organizationId: 'B', name: 'n' })]),
        ).rejects.toMatchObject({ name: 'DuplicateKeyError', fields: ['name'] });
      });
    });

    describe('batches', () => {
      it('reject a duplicate with the names of its fields, without the organization', async () => {
        await add(item('1'), item('2'));
        await expect(add(item('1', { key: 'new' }))).rejects.toMatchObject({
          name: 'DuplicateKeyError',
          collection: 'items',
          fields: ['_id'],
        });
        await expect(add(item('3', { key: '1' }))).rejects.toMatchObject({
          name: 'DuplicateKeyError',
          collection: 'items',
          fields: ['group', 'key'],
        });
        await expect(store().apply('A', [update(ITEMS, { _id: '2' }, { set: { key: '1' } })])).rejects.toMatchObject({
          fields: ['group', 'key'],
        });
        expect(idsOf(await store().find('A', ITEMS, { key: '2' }))).toEqual(['2']);
      });
      it('set and increment fields, an absent one from 0, and leave the others', async () => {
        await add(item('1', { rank: 5, note: 'n' }));
        const set = {
          text: 't',
          note: null,
          tags: ['"\\\u2028'],
          ratio: 0.1 + 0.2,
          part: { a: [null, 1e-7] },
          flag: true,
        };
        const changes = { set, increment: { rank: -2, seen: 3 } } as never;
        await store().apply('A', [update(ITEMS, { _id: '1', rank: 5 }, changes)]);
        const changed = { ...item('1', { rank: 3 }), ...set, seen: 3 };
        expect(await store().findOne('A', ITEMS, { _id: '1' })).toEqual(changed);
        const again = { text: null, note: 'm', tags: null, ratio: [], part: '', flag: false };
        await store().apply('A', [update(ITEMS, { _id: '1' }, { set: again as never })]);
        expect(await store().findOne('A', ITEMS, { _id: '1' })).toEqual({ ...changed, ...again });
      });
      it.each([
        { set: { _id: '2' } },
        { set: { text: undefined } },
        { set: { key: null } },
        { set: { rank: 1 }, increment: { rank: 1 } },
        { increment: { rank: NaN } },
        { increment: { text: 1 } },
        { set: { shape: 2 } },
        { increment: { writes: 1 } },
      ])('reject the changes %j', async (changes) => {
        await add(item('1'));
        await expect(store().apply('A', [update(ITEMS, { _id: '1' }, changes as never)])).rejects.toThrow(TypeError);
        expect(await store().findOne('A', ITEMS, { _id: '1' })).toEqual(item('1'));
      });
      it('name the expectation that failed, and then apply nothing', async () => {
        await add(item('1'));
        const batch = [
          insert(ITEMS, item('2')),
          update(ITEMS, { _id: '1' }, { set: { text: 'new' } }),
          remove(ITEMS, { _id: '1', rank: 7 }),
        ];
        await expect(store().apply('A', batch)).rejects.toMatchObject({
          name: 'ExpectationFailedError',
          index: 2,
          collection: 'items',
        });
        expect(await store().find('A', ITEMS, {})).toEqual([item('1')]);
      });
      it('apply each operation to the result of the earlier ones', async () => {
        await store().apply('A', [
          insert(ITEMS, item('1')),
          update(ITEMS, { _id: '1', rank: 0 }, { increment: { rank: 1 } }),
          insert(ITEMS, item('2')),
          remove(ITEMS, { _id: '2' }),
          insert(ITEMS, item('3', { key: '2' })),
        ]);
        expect((await store().find('A', ITEMS, {})).map(({ _id, rank }) => [_id, rank])).toEqual([
          ['1', 1],
          ['3', 0],
        ]);
      });
      it('skip optional operations that find no document', async () => {
        await store().apply('A', [
          update(ITEMS, { _id: '9' }, { set: { rank: 1 } }, { optional: true }),
          remove(ITEMS, { _id: '9' }, { optional: true }),
          insert(ITEMS, item('1')),
        ]);
        expect(await found({})).toEqual(['1']);
      });
      it('may only check an expectation and change nothing', async () => {
        await add(item('1'));
        await store().apply('A', [
          update(ITEMS, { _id: '1', rank: 0 }, {}),
          update(ITEMS, { _id: '1', rank: 0 }, { set: { rank: 0 }, increment: { seen: 0 } as never }),
        ]);
        expect(await store().find('A', ITEMS, {})).toEqual([{ ...item('1'), seen: 0 }]);
      });
      it('without operations do nothing', () => expect(store().apply('A', [])).resolves.toBeUndefined());
      it('store what was passed although the caller changes it afterwards', async () => {
        const given = item('1');
        const changes = { set: { text: 'set', parts: [{ name: 'set' }] } };
        const done = store().apply('A', [insert(ITEMS, given), update(ITEMS, { _id: '1' }, changes)]);
        given.rank = 7;
        changes.set.text = changes.set.parts[0]!.name = 'changed';
        await done;
        expect(await store().findOne('A', ITEMS, { _id: '1' })).toEqual(
          item('1', { text: 'set', parts: [{ name: 'set' }] }),
        );
      });
    });

    concurrencySuite(() => opened);
    fewValuesSuite(() => opened);
    largeReadsSuite(() => opened);
    manyDocumentsSuite(() => opened);
    sumsAndElementsSuite(() => opened);
  });
}
