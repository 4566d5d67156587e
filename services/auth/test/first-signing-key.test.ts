import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeMasterKey } from 'platform/core/master-key.ts';
import { openSealing } from 'platform/core/sealing.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { addKey } from '../src/signing-keys/add-key.ts';
import { purposeOf } from '../src/signing-keys/rules.ts';
import { openSigningKeys, SIGNING_KEYS } from '../src/signing-keys/store.ts';
import { testClock } from './fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('replicas that make the first or the next key at once make one, and all of them can sign with it', async () => {
  const { platformStore, close } = await openTestStore(join(folder.path, 'auth.db'), [SIGNING_KEYS]);
  const masterKey = join(folder.path, 'master.key');
  writeFileSync(masterKey, makeMasterKey());
  const clock = testClock();
  const replicas = Array.from({ length: 8 }, () => ({
    clock,
    signingKeys: openSigningKeys(platformStore),
    sealing: openSealing(masterKey),
  }));
  for (const generation of [1, 2]) {
    const known = await replicas[0]!.signingKeys.all();
    const made = await Promise.all(replicas.map((replica) => addKey(replica, known, { signsAfterMs: 0 })));
    expect(made.filter((key) => key)).toHaveLength(1);
    for (const { signingKeys, sealing } of replicas) {
      const keys = await signingKeys.all();
      expect(keys.map((key) => key.generation)).toEqual(generation === 1 ? [1] : [2, 1]);
      const [{ _id, sealed }] = keys as [(typeof keys)[0]];
      expect(sealed).not.toContain('"d"');
      expect(JSON.parse(sealing.open(purposeOf(_id), sealed))).toHaveProperty('d');
      expect(() => sealing.open(purposeOf('another'), sealed)).toThrow();
    }
  }
  await close();
});
