import { collection, insert, update, type Collection, type OpenStore } from 'platform/store/store.ts';

interface Person {
  _id: string;
  organizationId: string;
  name: string;
}
/** The next release adds the name in the form that is sorted by; the release after that no longer needs `name`. */
interface Sorted extends Person {
  sortName: string;
  note?: string;
}
const OLD = collection<Person>('people', { scope: 'organization' });
const NEW = collection<Sorted>('people', {
  scope: 'organization',
  version: 2,
  upgrades: { 1: ({ name }: Person) => ({ sortName: name.toLowerCase() }) },
});
const NEXT = collection<Omit<Sorted, 'name'> & { name: null }>('people', {
  scope: 'organization',
  version: 3,
  upgrades: { ...NEW.upgrades, 2: () => ({ name: null }) },
});

/** Runs `work` on the data as a release with these collections sees it. */
export type AsRelease = <T>(
  collections: readonly Collection<never>[],
  work: (open: OpenStore) => Promise<T>,
) => Promise<T>;

const never = new AbortController().signal;

/** What holds on every engine while replicas of two releases write: fields are added first and cleared later. */
export function documentVersionsSuite(
  name: string,
  start: () => Promise<{ asRelease: AsRelease; dispose(): Promise<void> }>,
): void {
  describe(`document versions on ${name}`, () => {
    let asRelease: AsRelease;
    let dispose: () => Promise<void>;
    beforeEach(async () => ({ asRelease, dispose } = await start()));
    afterEach(() => dispose());
    const older = <T>(work: (open: OpenStore) => Promise<T>) => asRelease([OLD as never], work);
    const newer = <T>(work: (open: OpenStore) => Promise<T>) => asRelease([NEW as never], work);
    const write = (...names: string[]) =>
      older(({ store }) =>
        store.apply(
          'A',
          names.map((each) => insert(OLD, { _id: each, organizationId: 'A', name: each })),
        ),
      );
    const rename = (_id: string, to: string) =>
      older(({ store }) => store.apply('A', [update(OLD, { _id }, { set: { name: to } })]));
    const sortNames = () =>
      newer(async ({ store }) => (await store.find('A', NEW, {})).map(({ sortName }) => sortName));

    it('a document of an older version is read in the present version, before its migration and after it', async () => {
      await write('Ada', 'Bob');
      expect(await sortNames()).toEqual(['ada', 'bob']);
      expect(await newer(({ migrate }) => migrate(never))).toBe(2);
      expect(await sortNames()).toEqual(['ada', 'bob']);
      expect(await newer(({ store }) => store.count('A', NEW, { sortName: 'ada' }))).toBe(1);
      expect(await newer(({ migrate }) => migrate(never))).toBe(0);
    });
    it('what an older replica writes after the migration is read correctly by new ones, and migrated again', async () => {
      await write('Ada');
      await newer(({ migrate }) => migrate(never));
      await rename('Ada', 'Zoe');
      await write('Cleo');
      expect(await sortNames()).toEqual(['zoe', 'cleo']);
      expect(await newer(({ migrate }) => migrate(never))).toBe(2);
      expect(await newer(({ store }) => store.count('A', NEW, { sortName: 'zoe' }))).toBe(1);
    });
    it.each([false, true])(
      'an update by a new replica upgrades a document that an older one wrote last (optional: %s)',
      async (optional) => {
        await write('Ada', 'Bob');
        await newer(({ store }) =>
          store.apply('A', [
            insert(NEW, { _id: 'Cleo', organizationId: 'A', name: 'Cleo', sortName: 'cleo' }),
            update(NEW, { _id: 'Ada', name: 'Ada' }, { set: { note: 'n' } }, { optional }),
            update(NEW, { _id: 'Cleo' }, { set: { note: 'n' } }),
          ]),
        );
        expect(await newer(({ store }) => store.findOne('A', NEW, { sortName: 'ada' }))).toEqual({
          _id: 'Ada',
          organizationId: 'A',
          name: 'Ada',
          sortName: 'ada',
          note: 'n',
        });
        await rename('Ada', 'Zoe');
        await newer(({ store }) =>
          store.apply('A', [update(NEW, { _id: 'Ada' }, { set: { note: 'm' } }, { optional })]),
        );
        expect(await newer(({ store }) => store.findOne('A', NEW, { sortName: 'zoe' }))).toMatchObject({
          name: 'Zoe',
          note: 'm',
        });
        expect(await newer(({ migrate }) => migrate(never))).toBe(1);
        await expect(
          newer(({ store }) => store.apply('A', [update(NEW, { _id: 'Ada', name: 'Ada' }, { set: { note: 'no' } })])),
        ).rejects.toMatchObject({ name: 'ExpectationFailedError', index: 0 });
      },
    );
    it('an update by a replica of the previous release lowers the version of the document', async () => {
      await asRelease([NEXT as never], ({ store }) =>
        store.apply('A', [insert(NEXT, { _id: 'Ada', organizationId: 'A', name: null, sortName: 'ada' })]),
      );
      await newer(({ store }) =>
        store.apply('A', [update(NEW, { _id: 'Ada' }, { set: { name: 'Zoe', sortName: 'zoe' } })]),
      );
      expect(await asRelease([NEXT as never], ({ store }) => store.findOne('A', NEXT, { _id: 'Ada' }))).toMatchObject({
        name: null,
        sortName: 'zoe',
      });
      expect(await asRelease([NEXT as never], ({ migrate }) => migrate(never))).toBe(1);
    });
    it('older replicas can read what new ones wrote', async () => {
      await newer(({ store }) =>
        store.apply('A', [insert(NEW, { _id: 'Ada', organizationId: 'A', name: 'Ada', sortName: 'ada' })]),
      );
      expect(await older(({ store }) => store.find('A', OLD, {}))).toMatchObject([{ _id: 'Ada', name: 'Ada' }]);
    });
    it('a later version clears a field that is no longer needed, and a migration takes several versions at once', async () => {
      await write('Ada', ...Array.from({ length: 230 }, (_, n) => `p${String(n).padStart(3, '0')}`));
      const cleared = await asRelease([NEXT as never], async ({ store, migrate }) => [
        await migrate(never),
        await store.findOne('A', NEXT, { _id: 'Ada' }),
        await store.count('A', NEXT, { name: null }),
      ]);
      expect(cleared).toEqual([231, { _id: 'Ada', organizationId: 'A', name: null, sortName: 'ada' }, 231]);
    });
  });
}
