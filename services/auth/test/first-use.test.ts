import { join } from 'node:path';
import { isoTime } from 'platform/core/clock.ts';
import { unavailable } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { makeDenials } from 'platform/events/denials.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { insert, type OpenStore } from 'platform/store/store.ts';
import { authenticate } from '../src/authentication/authenticate.ts';
import { makeLastUsed } from '../src/authentication/last-used.ts';
import { resolveServerTokens } from '../src/authentication/resolve-server-tokens.ts';
import { openTokenLookup } from '../src/authentication/token-lookup.ts';
import { openOrganizations, ORGANIZATIONS } from '../src/organizations/store.ts';
import { hashToken, makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { SERVER_TOKENS } from '../src/server-tokens/store.ts';
import { LIST_TYPES, testClock } from './fixture.ts';

const folder = temporaryFolder();
const clock = testClock();
let opened: OpenStore;
beforeAll(async () => {
  opened = await openSqliteStore(join(folder.path, 'auth.db'), [ORGANIZATIONS, SERVER_TOKENS]);
});
afterAll(async () => {
  await opened.close();
  folder.remove();
});

/** A live token of a new organization, in the store. */
async function liveToken(lastUsedAt: string | null): Promise<string> {
  const [bearer, organizationId, _id, now] = [makeToken(SERVER_TOKEN), newId(), newId(), isoTime(clock.now())];
  const organization = { _id: organizationId, name: organizationId, nameKey: organizationId, tier: 'enterprise' };
  await opened.platformStore.apply([
    insert(ORGANIZATIONS, { ...organization, state: 'active', createdAt: now, updatedAt: now, tokenEpoch: 0 }),
    insert(SERVER_TOKENS, {
      ...{ _id, organizationId, name: _id, nameSlot: `id:${_id}`, hash: hashToken(bearer), hint: bearer.slice(0, 8) },
      ...{ createdAt: now, createdBy: 'ada@example.com', lastUsedAt, expiresAt: null, revokedAt: null },
    }),
  ]);
  return bearer;
}

/** Asks auth about these tokens in one call. `apply` replaces the store's writes. */
function ask(bearers: readonly string[], apply: () => Promise<void>) {
  const platformStore = { ...opened.platformStore, apply };
  const tokenLookup = openTokenLookup(platformStore);
  const deps = {
    clock,
    organizations: openOrganizations(platformStore),
    tokenLookup,
    resolvers: [resolveServerTokens({ tokenLookup })],
    lastUsed: makeLastUsed(),
    denials: makeDenials(),
    methodOptions: allMethodOptions(),
  };
  const patient = { deadline: Number.POSITIVE_INFINITY, signal: new AbortController().signal };
  const attempts = bearers.map((bearer) => ({ bearer, method: LIST_TYPES, requestId: '' }));
  return authenticate(deps, { attempts }, patient);
}
const diskFull = () => Promise.reject(unavailable('The document store is not available', new Error('disk is full')));
const nothing = () => new Promise<void>(() => {});

describe('the first use of a token', () => {
  it.each([
    ['fails', diskFull],
    ['is never answered', nothing],
  ])('does not concern other tokens of the same turn when its write %s', async (_how, apply) => {
    const fresh = await liveToken(null);
    const used = await Promise.all(Array.from({ length: 99 }, () => liveToken(isoTime(clock.now()))));
    const { decisions } = await ask([...used.slice(0, 50), fresh, ...used.slice(50)], apply);
    expect(decisions[50]).toEqual({ askAlone: true });
    decisions.splice(50, 1);
    expect(decisions.filter(({ principal }) => principal?.kind === 'SERVER_TOKEN')).toHaveLength(99);
  });

  it('is not accepted when its write fails', async () => {
    const fresh = await liveToken(null);
    await expect(ask([fresh, fresh], diskFull)).rejects.toMatchObject({ reason: 'UNAVAILABLE' });
  });
});
