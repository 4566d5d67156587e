import { join } from 'node:path';
import { isoTime } from 'platform/core/clock.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { openTokenLookup } from '../src/authentication/token-lookup.ts';
import { openServerTokens, SERVER_TOKENS, slotOfName, type ServerTokenRecord } from '../src/server-tokens/store.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('the time of the last use moves forward, never back, in whatever order replicas write', async () => {
  const { store, platformStore, close } = await openTestStore(join(folder.path, 'auth.db'), [SERVER_TOKENS]);
  const [tokens, lookup] = [openServerTokens(store), openTokenLookup(platformStore)];
  const lastUsedAt = async (id: string) => (await tokens.byId('o', id))!.lastUsedAt;
  for (const _id of ['used', 'new']) {
    const token: ServerTokenRecord = {
      ...{ _id, organizationId: 'o', name: _id, nameSlot: slotOfName(_id), hash: _id, hint: _id },
      ...{ createdAt: isoTime(0), createdBy: '', lastUsedAt: null, expiresAt: null, revokedAt: null },
    };
    await tokens.create(token, undefined, []);
  }
  await lookup.markFirstUse('used', isoTime(1));
  await lookup.markUses(['used', 'new'].map((tokenId) => ({ tokenId, at: isoTime(5) })));
  await lookup.markUses([{ tokenId: 'used', at: isoTime(3) }]);
  await lookup.markFirstUse('used', isoTime(7));
  expect(await lastUsedAt('used')).toBe(isoTime(5));
  // the first use is written before its request is answered, or not at all
  expect(await lastUsedAt('new')).toBeNull();
  await close();
});
