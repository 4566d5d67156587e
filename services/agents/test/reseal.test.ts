import { join } from 'node:path';
import { isoTime } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { makeMasterKey } from 'platform/core/master-key.ts';
import { keyIdOf, type Sealing } from 'platform/core/sealing.ts';
import type { SealedText } from 'platform/jobs/reseal.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { masterKeyCheck } from 'platform/service/master-key-check.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { ExpectationFailedError, insert, remove } from 'platform/store/store.ts';
import {
  expectNothingLostInRotations,
  testSealings,
  type SealingService,
  type TestTime,
} from '../../../test/support/master-key-rotation.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { resealSecretsJob, sealedSecrets } from '../src/jobs/reseal.ts';
import { openSecrets, SECRETS, type SecretRecord } from '../src/secrets/store.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const never = new AbortController().signal;
/** In place of an audit entry. */
const noted = () => {
  const _id = newId();
  return insert(OUTBOX, { _id, organizationId: '', topic: 'audit.v1', event: '{}' } as never);
};

async function openSecretsOf(file: string, clock: TestTime) {
  const opened = await openTestStore(file, [SECRETS, OUTBOX]);
  const organizationId = newId();
  return {
    ...opened,
    clock,
    organizationId,
    secretsAt: (sealing: Sealing) => openSecrets(opened.store, sealing),
    async set(sealing: Sealing, name: string, value: string, previousUntil?: string): Promise<void> {
      const secrets = openSecrets(opened.store, sealing);
      const existing = await secrets.byName(organizationId, name);
      const now = isoTime(clock.now());
      const given = { existing, name, value, now, ...(previousUntil && { previousUntil }) };
      await secrets.set(organizationId, given, noted());
    },
    rows: () => opened.platformStore.find(SECRETS, {}),
  };
}

/** Values with and without an overlap, which ends in the middle of a rotation. */
async function serviceOf(file: string, clock: TestTime): Promise<SealingService<SecretRecord>> {
  const store = await openSecretsOf(file, clock);
  const written = new Map<string, { value: string; until: number }[]>();
  let values = 0;
  return {
    documents: sealedSecrets(store),
    async write(sealing, number) {
      const [name, value] = [`secret-${number % 3}`, `value ${(values += 1)}`];
      const until = number % 2 === 0 ? clock.now() + 400_000 : 0;
      const [before] = written.get(name) ?? [];
      await store.set(sealing, name, value, until ? isoTime(until) : undefined);
      written.set(name, [{ value, until: Number.POSITIVE_INFINITY }, ...(before ? [{ ...before, until }] : [])]);
    },
    async expectAll(sealing) {
      for (const [name, expected] of written)
        expect(await store.secretsAt(sealing).values(store.organizationId, name, isoTime(clock.now()))).toEqual(
          expected.filter(({ until }) => until > clock.now()).map(({ value }) => value),
        );
    },
    close: () => store.close(),
  };
}

it('every secret opens at every step of rotations that two replicas see at different times, whatever is killed', async () => {
  await expectNothingLostInRotations(folder.path, (own, clock) => serviceOf(join(own, 'agents.db'), clock));
});

describe('the job reseal', () => {
  const clock = { now: () => Date.now() };
  const [OLD, NEW] = [makeMasterKey(), makeMasterKey()];
  const { under, close: closeSealings } = testSealings(folder.path);
  const [before, after] = [under(OLD), under(NEW, OLD)];
  let store: Awaited<ReturnType<typeof openSecretsOf>>;
  beforeEach(async () => {
    store = await openSecretsOf(join(folder.path, `${newId()}.db`), clock);
  });
  afterEach(() => store.close());
  afterAll(closeSealings);
  const reseal = (sealing = after) => resealSecretsJob({ ...store, sealing }).run(never);
  const valuesOf = (name: string, sealing = under(NEW)) =>
    store.secretsAt(sealing).values(store.organizationId, name, isoTime(clock.now()));

  it('seals each secret anew once, however many there are, and writes nothing when all are under the newest key', async () => {
    const names = Array.from({ length: 120 }, (_, index) => `secret-${index}`);
    const later = isoTime(clock.now() + 3_600_000);
    for (const name of names) {
      await store.set(before, name, `first of ${name}`);
      await store.set(name.endsWith('7') ? after : before, name, name, later);
    }
    expect(await reseal()).toBe(120);
    for (const name of names) expect(await valuesOf(name)).toEqual([name, `first of ${name}`]);
    const rows = await store.rows();
    expect(await reseal()).toBe(0);
    expect(await store.rows()).toEqual(rows);
  });

  it('seals anew what a release without key ids has written', async () => {
    await store.set(before, 'old', 'value');
    const [row] = await store.rows();
    const { sealedUnder: _, ...unlabelled } = row!;
    const sealed = row!.sealed.replace(/=.*$/, '');
    await store.platformStore.apply([
      remove(SECRETS, { _id: row!._id }),
      insert(SECRETS, { ...unlabelled, _id: newId(), sealed }),
    ]);
    expect(keyIdOf(sealed)).toBeUndefined();
    expect([await reseal(before), await valuesOf('old', before)]).toEqual([1, ['value']]);
    expect((await store.rows())[0]!.sealedUnder).toBe(before.sealsUnder());
    expect([await reseal(), await valuesOf('old')]).toEqual([1, ['value']]);
  });

  it('drops a value whose overlap has ended, and the rest stays', async () => {
    await store.set(before, 'name', 'one');
    await store.set(after, 'name', 'two', isoTime(clock.now() - 1));
    expect(await reseal()).toBe(1);
    expect(await valuesOf('name')).toEqual(['two']);
    expect(await store.rows()).toEqual([expect.objectContaining({ previous: null, sealedUnder: after.sealsUnder() })]);
  });

  it('leaves what does not open as it is, and goes on with the others', async () => {
    await store.set(under(makeMasterKey()), 'lost', 'value');
    await store.set(before, 'kept', 'value');
    const lost = (await store.rows()).filter(({ name }) => name === 'lost');
    expect([await reseal(), await reseal()]).toEqual([1, 0]);
    expect((await store.rows()).filter(({ name }) => name === 'lost')).toEqual(lost);
    expect(await valuesOf('kept')).toEqual(['value']);
    // and whoever would retire a key is told
    expect(await masterKeyCheck(after, sealedSecrets(store)).look()).toEqual({
      fine: false,
      sentence: `${after.sealsUnder()} seals, MASTER_KEY_FILE does not hold the key for 1`,
      masterKey: after.sealsUnder(),
    });
  });

  it('tells whoever would retire a key that the file of the keys cannot be read', async () => {
    expect(await masterKeyCheck({ ...after, hasFile: () => false }, sealedSecrets(store)).look()).toMatchObject({
      fine: false,
      sentence: `${after.sealsUnder()} seals, its file cannot be read: bring it back before a restart`,
    });
  });

  it('does not replace a value that is set between its read and its write, nor does that lose the one before', async () => {
    await store.set(before, 'name', 'one');
    const documents = sealedSecrets(store);
    const [read] = await Array.fromAsync(documents.notUnder(after.sealsUnder()));
    await store.set(before, 'name', 'two', isoTime(clock.now() + 3_600_000));
    const renew = ({ purpose, sealed }: SealedText) => after.seal(purpose, after.open(purpose, sealed));
    await expect(documents.replace(read!, renew)).rejects.toThrow(ExpectationFailedError);
    expect(await valuesOf('name', before)).toEqual(['two', 'one']);
    expect([await reseal(), await valuesOf('name')]).toEqual([1, ['two', 'one']]);
  });

  it('makes a writer read again that has read before it: the previous value is never of an older key', async () => {
    await store.set(before, 'name', 'one');
    const secrets = store.secretsAt(after);
    const existing = await secrets.byName(store.organizationId, 'name');
    await reseal();
    const given = { existing, name: 'name', value: 'two', now: isoTime(clock.now()), previousUntil: '2999' };
    await expect(secrets.set(store.organizationId, given, noted())).rejects.toThrow(ExpectationFailedError);
    expect(await valuesOf('name')).toEqual(['one']);
  });

  it('of replicas that run it beside writers, none loses a value', async () => {
    for (const round of [1, 2, 3]) {
      const names = Array.from({ length: 10 }, (_, index) => `raced-${index}`);
      for (const name of names) await store.set(before, name, `${round} before`);
      const set = (name: string): Promise<void> =>
        store.set(before, name, `${round} after`).catch((error: unknown) => {
          if (!(error instanceof ExpectationFailedError)) throw error;
          return set(name);
        });
      await Promise.all([reseal(), ...names.map(set), reseal()]);
      await reseal();
      for (const name of names) expect(await valuesOf(name)).toEqual([`${round} after`]);
    }
  });

  it('seals for the same organization and name: a row that is moved does not open', async () => {
    await store.set(before, 'mine', 'value');
    await reseal();
    const [row] = await store.rows();
    const moved = [
      { ...row!, _id: newId(), name: 'other' },
      { ...row!, _id: newId(), organizationId: newId() },
    ];
    await store.platformStore.apply(moved.map((one) => insert(SECRETS, one)));
    for (const { organizationId, name } of moved)
      await expect(store.secretsAt(after).values(organizationId, name, isoTime(clock.now()))).rejects.toThrow();
    // nor does the job make it open
    expect(await reseal(under(makeMasterKey(), NEW))).toBe(1);
    for (const { organizationId, name } of moved)
      await expect(store.secretsAt(after).values(organizationId, name, isoTime(clock.now()))).rejects.toThrow();
  });
});
