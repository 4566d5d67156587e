import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { explain, recordStatements } from '../../../test/support/query-plans.ts';
import { requireFilter } from '../src/audit/filter.ts';
import { AUDIT_ENTRIES, AUDIT_HEADS, NO_ID, openAuditEntries } from '../src/audit/store.ts';
import { openJwtLookup } from '../src/authentication/jwt-lookup.ts';
import { openTokenLookup } from '../src/authentication/token-lookup.ts';
import { GRANTS, openGrants } from '../src/grants/store.ts';
import { openSigningKeys, SIGNING_KEYS } from '../src/signing-keys/store.ts';
import { openOrganizations, ORGANIZATIONS } from '../src/organizations/store.ts';
import { openServerTokens, SERVER_TOKENS } from '../src/server-tokens/store.ts';
import { MEMBERSHIPS, openUsers, USERS } from '../src/users/store.ts';

it('on SQLite, every read goes by an index that has its order, and every index serves a read', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'auth.db');
  const recorded = recordStatements();
  const { store, platformStore, close } = await openSqliteStore(file, [
    ...[ORGANIZATIONS, USERS, MEMBERSHIPS, SERVER_TOKENS, AUDIT_ENTRIES, AUDIT_HEADS, GRANTS, SIGNING_KEYS],
  ]);
  const organizationId = newId();
  const now = new Date().toISOString();
  const organizations = openOrganizations(platformStore);
  await organizations.byId(organizationId);
  await organizations.byIds([organizationId]);
  await organizations.byName('a');
  await organizations.list('', 10);
  const users = openUsers(store, platformStore);
  await users.byEmail('a@b.c');
  await users.membershipByEmail(organizationId, 'a@b.c');
  await users.membershipByUserId(organizationId, newId());
  await users.list(organizationId, '', 10);
  const tokens = openServerTokens(store);
  await tokens.byId(organizationId, newId());
  await tokens.byName(organizationId, 'a');
  for (const afterId of ['', newId()]) await tokens.list(organizationId, afterId, 10);
  await tokens.countLive(organizationId, now);
  const lookup = openTokenLookup(platformStore);
  await lookup.byHashes(['a', 'b']);
  await lookup.markFirstUse(newId(), now);
  await lookup.markUses([{ tokenId: newId(), at: now }]);
  const jwts = openJwtLookup(platformStore);
  await jwts.grants([newId()]);
  await jwts.memberships([newId()]);
  const grants = openGrants(store, platformStore);
  await grants.byId(organizationId, newId());
  for (const afterId of ['', newId()]) await grants.list(organizationId, afterId, 10);
  await grants.removeBefore(now, 10);
  await openSigningKeys(platformStore).all();
  const audit = openAuditEntries(store, platformStore);
  const denied = { code: 'FORBIDDEN', outcome: 'denied', action: 'request.refused', targetType: null, targetId: null };
  const actor = { actorKind: 'user', actorId: newId(), actorName: 'ada', actorVia: '' };
  const entry = { _id: newId(), organizationId, at: now, ...denied, ...actor, count: 1, requestId: 'r' };
  await audit.append([entry]);
  await audit.append([{ ...entry, _id: newId() }]);
  await audit.byId(organizationId, newId());
  for (const before of [undefined, { _id: newId(), at: now }])
    for (const filter of [
      requireFilter({ action: '' }, undefined),
      requireFilter({ action: '', since: now, until: now }, undefined),
      requireFilter({ action: 'user.create' }, undefined),
      ...['success', 'failure', 'denied'].map((outcome) => requireFilter({ action: '', outcome }, undefined)),
      requireFilter({ action: 'user.create', outcome: 'success', until: now }, ['ada']),
      requireFilter({ action: '' }, ['ada', newId()]),
      requireFilter({ action: 'user.create', resource: { type: 'user', id: newId() } }, ['ada', newId()]),
      requireFilter({ action: '', resource: { type: 'user', id: newId() } }, undefined),
    ])
      await audit.list(organizationId, { ...filter, before, limit: 10 });
  await audit.removeUnchained(now, 10);
  await audit.headsAfter(NO_ID, 10);
  await tokens.everNamed(organizationId, 'a');
  await audit.cutChain(organizationId, now, 10);
  for (const afterId of ['', newId()]) await audit.unchainedAfter(organizationId, afterId, 10);
  await audit.countUnchained(organizationId);
  recorded.stop();
  const { costly, unusedIndexes } = explain(file, recorded.sql);
  // These sort the tokens and the memberships of one call.
  const allowed = /"(hash|userId)" IN \(SELECT/;
  expect(costly.filter((sql) => !allowed.test(sql))).toEqual([]);
  expect(unusedIndexes).toEqual([]);
  await close();
  folder.remove();
});
