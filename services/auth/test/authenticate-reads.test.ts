import { join } from 'node:path';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { makeDenials } from 'platform/events/denials.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import type { PlatformStore } from 'platform/store/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openOrganizations, ORGANIZATIONS } from '../src/organizations/store.ts';
import { authenticate } from '../src/authentication/authenticate.ts';
import { makeLastUsed } from '../src/authentication/last-used.ts';
import { resolveServerTokens } from '../src/authentication/resolve-server-tokens.ts';
import { openTokenLookup } from '../src/authentication/token-lookup.ts';
import { makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { SERVER_TOKENS } from '../src/server-tokens/store.ts';
import { LIST_TYPES, testClock } from './fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('reads nothing for malformed tokens, and reads once for any number of well-formed ones', async () => {
  const { platformStore, close } = await openSqliteStore(join(folder.path, 'auth.db'), [ORGANIZATIONS, SERVER_TOKENS]);
  const reads: string[] = [];
  const countingStore: PlatformStore = {
    ...platformStore,
    find: (collection, filter, options) => {
      reads.push(collection.name);
      return platformStore.find(collection, filter, options);
    },
  };
  const tokenLookup = openTokenLookup(countingStore);
  const deps = {
    clock: testClock(),
    organizations: openOrganizations(countingStore),
    tokenLookup,
    resolvers: [resolveServerTokens({ tokenLookup })],
    lastUsed: makeLastUsed(),
    denials: makeDenials(),
    methodOptions: allMethodOptions(),
  };
  const patient = { deadline: Number.POSITIVE_INFINITY, signal: new AbortController().signal };
  const ask = (bearers: string[]) =>
    authenticate(deps, { attempts: bearers.map((bearer) => ({ bearer, method: LIST_TYPES, requestId: '' })) }, patient);
  const wellFormed = makeToken(SERVER_TOKEN);
  await ask([
    '',
    'nonsense',
    ...[...wellFormed].map(
      (character, place) => wellFormed.slice(0, place) + (character === 'x' ? 'y' : 'x') + wellFormed.slice(place + 1),
    ),
  ]);
  expect(reads).toEqual([]);
  await ask(Array.from({ length: 500 }, () => makeToken(SERVER_TOKEN)));
  expect(reads).toEqual(['server_tokens']);
  await close();
});
