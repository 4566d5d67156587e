import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import type { Program, ServiceStore } from 'platform/service/program.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import { collection, insert, update, type Collection, type OpenStore } from 'platform/store/store.ts';
import { startProgram, type RunningProgram } from 'platform/service/testing.ts';
import { eventually } from 'platform/service/test-end.ts';

interface Person {
  _id: string;
  organizationId: string;
  name: string;
  /** The first letter of each word of the name. */
  initials: string[];
}
const OLD = collection<Person>('people', { scope: 'organization' });
const NEW = collection<Person & { upper: string; short: string; note?: number }>('people', {
  scope: 'organization',
  version: 2,
  upgrades: { 1: ({ name, initials }: Person) => ({ upper: name.toUpperCase(), short: initials.join('') }) },
});

const PEOPLE = 120;
const REPLICAS = 4;
const INITIALS = 3;
const never = new AbortController().signal;

describe('replicas that migrate at the same moment, without a lease', () => {
  let older: OpenStore;
  let newer: OpenStore[];
  beforeAll(async () => {
    const database = `migrate-${newId()}`;
    const open = (people: unknown) =>
      openMongoStore(
        {
          url: process.env.MONGODB_URL as string,
          database,
          poolMax: 5,
          timeoutMs: 60_000,
          log: makeLog('test', 'silent'),
        },
        [people as Collection<never>],
      );
    older = await open(OLD);
    newer = await Promise.all(Array.from({ length: REPLICAS }, () => open(NEW)));
    await older.store.apply(
      'A',
      Array.from({ length: PEOPLE }, (_, n) =>
        insert(OLD, { _id: `p${n}`, organizationId: 'A', name: `p${n}`, initials: ['p'] }),
      ),
    );
  });
  afterAll(async () => {
    for (const store of [older, ...newer]) await store.close();
  });
  const together = async (): Promise<number> =>
    (await Promise.all(newer.map(({ migrate }) => migrate(never)))).reduce((sum, count) => sum + count, 0);
  const inDatabase = () => newer[0]!.store.count('A', NEW, { upper: { gt: '' } });

  it('migrate each document exactly once', async () => {
    expect(await together()).toBe(PEOPLE);
    expect(await inDatabase()).toBe(PEOPLE);
    expect(await together()).toBe(0);
  }, 300_000);

  it('lose no write of an older replica during the migration', async () => {
    const renaming = (async () => {
      for (let n = 0; n < PEOPLE; n += 3)
        await older.store.apply('A', [update(OLD, { _id: `p${n}` }, { set: { name: `new${n}` } })]);
    })();
    const adding = Promise.all(
      Array.from({ length: PEOPLE }, async (_, n) => {
        for (let round = 1; round <= INITIALS; round++)
          await older.store.apply('A', [
            update(OLD, { _id: `p${n}` }, { set: { initials: Array.from({ length: round }, () => 'q') } }),
          ]);
      }),
    );
    const noting = Promise.all(
      Array.from({ length: PEOPLE }, async (_, n) => {
        for (let round = 1; round <= INITIALS; round++)
          await newer[1]!.store.apply('A', [update(NEW, { _id: `p${n}` }, { set: { note: round } })]);
      }),
    );
    let written = false;
    const writing = Promise.all([renaming, adding, noting]);
    void writing
      .finally(() => {
        written = true;
      })
      .catch(() => undefined);
    while (!written) await together();
    await writing;
    await together();
    const people = await newer[0]!.store.find('A', NEW, {});
    expect(
      people.filter(
        ({ _id, name, upper }) =>
          upper !== name.toUpperCase() || name.startsWith('new') !== (Number(_id.slice(1)) % 3 === 0),
      ),
    ).toEqual([]);
    expect(people.filter(({ short, note }) => short !== 'q'.repeat(INITIALS) || note !== INITIALS)).toEqual([]);
    expect(await newer[0]!.store.count('A', NEW, { upper: { in: people.map(({ upper }) => upper) } })).toBe(PEOPLE);
  }, 300_000);
});

describe('two replicas of a new release that start beside one of the old release', () => {
  const env = { MONGODB_URL: process.env.MONGODB_URL as string, MONGODB_DATABASE: `t${newId().slice(-12)}` };
  const running: RunningProgram[] = [];
  afterAll(async () => {
    for (const program of running) await program.stop();
  });

  /** Starts replicas whose store declares this collection. @returns the store of one replica */
  async function startRelease(people: unknown, replicas: number): Promise<ServiceStore> {
    let opened: ServiceStore;
    const program: Program<Record<string, never>, ServiceStore> = {
      name: 'memory',
      config: {},
      calls: [],
      publishes: [],
      openDeps: async ({ openStore }) => (opened = await openStore([people as Collection<never>])),
      services: () => [],
      jobs: () => [],
    };
    running.push(await startProgram(program, env, undefined, replicas));
    return opened!;
  }

  it('migrate at the start, under a lease, and later migrate what the old release writes', async () => {
    const older = await startRelease(OLD, 1);
    const person = (n: number) => insert(OLD, { _id: `p${n}`, organizationId: 'A', name: `p${n}`, initials: ['p'] });
    await older.store.apply(
      'A',
      Array.from({ length: PEOPLE }, (_, n) => person(n)),
    );
    const newer = await startRelease(NEW, 2);
    const inDatabase = () => newer.store.count('A', NEW, { short: 'p' });
    await eventually(async () => (await inDatabase()) === PEOPLE);

    await older.store.apply('A', [person(PEOPLE), update(OLD, { _id: 'p0' }, { set: { name: 'new' } })]);
    expect(await running[1]!.runJob('migrate')).toEqual({ ran: true, count: 2 });
    expect(await inDatabase()).toBe(PEOPLE + 1);
    expect(await newer.store.count('A', NEW, { upper: 'NEW' })).toBe(1);
    expect(await older.store.findOne('A', OLD, { _id: 'p0' })).toMatchObject({ name: 'new', initials: ['p'] });
  }, 300_000);
});
