import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeMasterKey } from 'platform/core/master-key.ts';
import { openSealing } from 'platform/core/sealing.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { addKey } from '../src/signing-keys/add-key.ts';
import { signingKeyCheck } from '../src/signing-keys/check.ts';
import { openSigningKeys, SIGNING_KEYS } from '../src/signing-keys/store.ts';
import { testClock } from './fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('the doctor is told whether a replica can issue JWTs', async () => {
  const { platformStore, close } = await openSqliteStore(join(folder.path, 'auth.db'), [SIGNING_KEYS]);
  const sealingOf = (name: string) => {
    const file = join(folder.path, name);
    writeFileSync(file, makeMasterKey());
    return openSealing(file);
  };
  const deps = { clock: testClock(), signingKeys: openSigningKeys(platformStore), sealing: sealingOf('one') };
  expect(await signingKeyCheck(deps).look()).toMatchObject({
    fine: false,
    sentence: 'there is none, so no JWT can be issued',
  });
  await addKey(deps, [], { signsAfterMs: 0 });
  expect(await signingKeyCheck(deps).look()).toMatchObject({
    fine: true,
    sentence: expect.stringMatching(/^number 1 signs since \d{4}-\d\d-\d\d$/),
  });
  expect(await signingKeyCheck({ ...deps, sealing: sealingOf('another') }).look()).toEqual({
    fine: false,
    sentence: 'MASTER_KEY_FILE does not hold the key under which it is sealed',
  });
  await close();
});
