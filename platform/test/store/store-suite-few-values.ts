import { newId } from 'platform/core/ids.ts';
import { collection, insert, update, type Filter, type OpenStore } from 'platform/store/store.ts';
import { idsOf } from './store-suite.ts';

interface Job {
  _id: string;
  organizationId: string;
  owner: string;
  state: string;
  rank: number;
}
export const JOBS = collection<Job>('jobs', {
  scope: 'organization',
  columns: { _id: 'id', owner: 'text', state: 'text' },
  indexes: [
    { fields: ['owner', 'state'], few: true },
    { fields: ['state'], few: true },
  ],
});
const STATES = ['', 'a', 'b', 'c', 'z'];

/** What every engine promises of pages where the filter does not ask for a field of few values. */
export function fewValuesSuite(opened: () => OpenStore): void {
  const store = () => opened().store;
  const jobs = (count: number): Job[] =>
    Array.from({ length: count }, (_, place) => ({
      ...{ _id: newId(), organizationId: 'A', owner: place % 3 === 0 ? 'one' : 'two' },
      ...{ state: STATES[(place * place) % STATES.length]!, rank: place },
    }));
  const write = (written: readonly Job[]) =>
    store().apply(
      'A',
      written.map((job) => insert(JOBS, job)),
    );

  describe('pages without a condition on a field of few values', () => {
    it.each<[string, Filter<Job>, (job: Job) => boolean]>([
      ['nothing', {}, () => true],
      ['the field before it', { owner: 'one' }, ({ owner }) => owner === 'one'],
      ['another field', { rank: { gte: 10 } }, ({ rank }) => rank >= 10],
      ['a value of it', { state: 'a' }, ({ state }) => state === 'a'],
      ['what no document has', { owner: 'none' }, () => false],
    ])('have each document once, in order, where the filter asks for %s', async (_what, filter, isMeant) => {
      const written = jobs(40);
      await write(written);
      const [{ _id }] = jobs(1) as [Job];
      await store().apply('B', [insert(JOBS, { ...written[0]!, _id, organizationId: 'B' })]);
      for (const direction of ['asc', 'desc'] as const) {
        const seen: string[] = [];
        for (let last: string | undefined; ; last = seen.at(-1)) {
          const after = last === undefined ? {} : { after: [last] };
          const page = await store().find('A', JOBS, filter, { sort: [['_id', direction]], limit: 7, ...after });
          seen.push(...page.map((job) => job._id));
          if (page.length < 7) break;
        }
        const expected = written.filter(isMeant).map((job) => job._id);
        expect(seen).toEqual(direction === 'asc' ? expected : expected.reverse());
        const skipped = await store().find('A', JOBS, filter, { sort: [['_id', direction]], skip: 3, limit: 5 });
        expect(skipped.map((job) => job._id)).toEqual(seen.slice(3, 8));
      }
    });

    it('have every document while the values change', async () => {
      const written = jobs(300);
      await write(written);
      let isOver = false;
      const changing = (async () => {
        for (let round = 0; !isOver; round++)
          await store().apply(
            'A',
            written
              .slice((round % 10) * 30, (round % 10) * 30 + 30)
              .map(({ _id }, place) =>
                update(JOBS, { _id }, { set: { state: STATES[(place + round) % STATES.length]! } }),
              ),
          );
      })();
      for (let read = 0; read < 30; read++)
        for (const filter of [{}, { owner: { ne: '' } }])
          expect(idsOf(await store().find('A', JOBS, filter, { sort: [['_id', 'desc']], limit: 300 }))).toHaveLength(
            300,
          );
      isOver = true;
      await changing;
    });
  });
}
