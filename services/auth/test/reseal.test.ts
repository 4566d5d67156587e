import { join } from 'node:path';
import { HOUR_MS } from 'platform/core/clock.ts';
import { makeMasterKey } from 'platform/core/master-key.ts';
import type { Sealing } from 'platform/core/sealing.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { ExpectationFailedError } from 'platform/store/store.ts';
import {
  expectNothingLostInRotations,
  testSealings,
  type SealingService,
  type TestTime,
} from '../../../test/support/master-key-rotation.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { resealSigningKeysJob, sealedSigningKeys } from '../src/jobs/reseal.ts';
import { addKey } from '../src/signing-keys/add-key.ts';
import { openPrivateKey } from '../src/signing-keys/private-key.ts';
import { acceptedKeysAt, JWT_MS, SKEW_MS } from '../src/signing-keys/rules.ts';
import { openSigningKeys, SIGNING_KEYS, type SigningKeyRecord } from '../src/signing-keys/store.ts';
import { testClock } from './fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const never = new AbortController().signal;

/** New signing keys, some of which withdraw those before. */
async function serviceOf(file: string, clock: TestTime): Promise<SealingService<SigningKeyRecord>> {
  const { platformStore, close } = await openTestStore(file, [SIGNING_KEYS]);
  const signingKeys = openSigningKeys(platformStore);
  const privateKeys = new Map<string, string>();
  return {
    documents: sealedSigningKeys({ signingKeys, clock }),
    async write(sealing, number) {
      const given = { signsAfterMs: number % 3 === 0 ? 300_000 : 0, withdraw: number === 5 };
      const key = await addKey({ signingKeys, sealing, clock }, await signingKeys.all(), given);
      privateKeys.set(key!._id, openPrivateKey(sealing, key!));
    },
    async expectAll(sealing) {
      const keys = acceptedKeysAt(await signingKeys.all(), clock.now());
      expect(keys.length).toBeGreaterThan(0);
      for (const key of keys) expect(openPrivateKey(sealing, key)).toBe(privateKeys.get(key._id));
    },
    close,
  };
}

it('every signing key opens at every step of rotations that two replicas see at different times, whatever is killed', async () => {
  await expectNothingLostInRotations(folder.path, (own, clock) => serviceOf(join(own, 'auth.db'), clock));
});

describe('the job reseal', () => {
  const { under, close: closeSealings } = testSealings(folder.path);
  const [OLD, NEW] = [makeMasterKey(), makeMasterKey()];
  const [before, after] = [under(OLD), under(NEW, OLD)];
  const clock = testClock();
  let store: Awaited<ReturnType<typeof openTestStore>>;
  let signingKeys: ReturnType<typeof openSigningKeys>;
  let stores = 0;
  beforeEach(async () => {
    store = await openTestStore(join(folder.path, `auth-${(stores += 1)}.db`), [SIGNING_KEYS]);
    signingKeys = openSigningKeys(store.platformStore);
  });
  afterEach(() => store.close());
  afterAll(closeSealings);
  const add = async (sealing: Sealing, withdraw = false) =>
    (await addKey({ signingKeys, sealing, clock }, await signingKeys.all(), { signsAfterMs: 0, withdraw }))!;
  const reseal = (sealing = after) => resealSigningKeysJob({ signingKeys, clock, sealing }).run(never);

  it('seals each key anew once, and writes nothing when all are under the newest', async () => {
    for (let count = 0; count < 3; count++) await add(before);
    await add(after);
    expect(await reseal()).toBe(3);
    const keys = await signingKeys.all();
    for (const key of keys) expect(JSON.parse(openPrivateKey(under(NEW), key))).toHaveProperty('d');
    expect(await reseal()).toBe(0);
    expect(await signingKeys.all()).toEqual(keys);
  });

  it('leaves keys that are withdrawn or whose last JWT has ended: nobody opens them again', async () => {
    await add(before);
    await add(before, true);
    await add(before);
    clock.advance(JWT_MS + SKEW_MS + HOUR_MS);
    expect(await reseal()).toBe(1);
    const [newest] = await signingKeys.all();
    expect(() => openPrivateKey(under(NEW), newest!)).not.toThrow();
  });

  it('beside a withdrawal and a next key, does not undo either', async () => {
    const [first] = [await add(before)];
    await Promise.all([reseal(), add(before, true), reseal()]);
    await reseal();
    const keys = await signingKeys.all();
    expect(keys.map(({ generation, withdrawn }) => [generation, withdrawn])).toEqual([
      [2, false],
      [1, true],
    ]);
    expect(keys[1]!._id).toBe(first._id);
    expect(() => openPrivateKey(under(NEW), keys[0]!)).not.toThrow();
  });

  it('writes only what is as it was read', async () => {
    const key = await add(before);
    await reseal();
    await expect(signingKeys.reseal(key, 'from long ago')).rejects.toThrow(ExpectationFailedError);
    expect(() => openPrivateKey(after, key)).not.toThrow();
  });

  it('does not make a row open that holds what was sealed for another key', async () => {
    const [one, other] = [await add(before), await add(before)];
    await signingKeys.reseal(one, other.sealed);
    expect(await reseal()).toBe(1);
    const moved = (await signingKeys.all()).find(({ _id }) => _id === one._id);
    expect(moved!.sealed).toBe(other.sealed);
    expect(() => openPrivateKey(after, moved!)).toThrow('The key that signs JWTs was changed in the store');
  });
});
