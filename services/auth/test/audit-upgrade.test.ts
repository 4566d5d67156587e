import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { collection, insert, type OrganizationDocument } from 'platform/store/store.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { AUDIT_ENTRIES, AUDIT_HEADS, openAuditEntries } from '../src/audit/store.ts';
import { checkChain, START } from '../src/audit/chain.ts';

interface OldEntry extends OrganizationDocument {
  at: string;
  action: string;
  outcome: string;
  actorKind: string;
  actorId: string;
  actorName: string;
  actorVia: string;
  targetType: string | null;
  targetId: string | null;
  code: string | null;
  count: number;
  requestId: string;
}

/** As the releases without chains declared it. */
const OLD_ENTRIES = collection<OldEntry>('audit_entries', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', at: 'text', action: 'text', outcome: 'text', actorKind: 'text', actorId: 'long' },
    ...{ actorName: 'long', actorVia: 'long', targetType: 'long', targetId: 'long', code: 'long' },
    ...{ count: 'number', requestId: 'long' },
  },
  indexes: [{ fields: ['_id'] }, { fields: ['action'] }],
  platformIndexes: [{ fields: ['at'] }],
});

it('keeps the audit entries of a release without chains, lists them, and begins the chain after them', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'auth.db');
  const organizationId = newId();
  const entryAt = (at: string): OldEntry => ({
    ...{ _id: newId(), organizationId, at, action: 'user.create', outcome: 'success', actorKind: 'operator' },
    ...{ actorId: 'ada', actorName: 'ada', actorVia: '', targetType: 'user', targetId: 'u', code: null, count: 1 },
    requestId: 'r',
  });
  const days = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04'].map((day) => `${day}T00:00:00.000Z`);
  const old = days.slice(0, 3).map(entryAt);
  const before = await openSqliteStore(file, [OLD_ENTRIES]);
  await before.platformStore.apply(old.map((entry) => insert(OLD_ENTRIES, entry)));
  await before.close();

  const { store, platformStore, close } = await openSqliteStore(file, [AUDIT_ENTRIES, AUDIT_HEADS]);
  const entries = openAuditEntries(store, platformStore);
  const added = entryAt(days[3]!);
  // The first was delivered again after the upgrade.
  await entries.append([old[0]!, added]);
  const listed = await entries.list(organizationId, { actorId: 'ada', limit: 10 });
  expect(listed).toMatchObject([added, ...old.toReversed()]);
  expect(await entries.unchainedAfter(organizationId, '', 2)).toMatchObject(old.slice(0, 2));
  expect(await entries.unchainedAfter(organizationId, old[1]!._id, 2)).toMatchObject(old.slice(2));
  expect(await entries.countUnchained(organizationId)).toBe(3);
  const chain = await entries.chainAfter(organizationId, 0, 10);
  expect(chain).toMatchObject([{ ...added, sequence: 1 }]);
  expect(checkChain(START, chain).faults).toEqual([]);
  expect([await entries.removeUnchained(days[2]!, 10), await entries.countUnchained(organizationId)]).toEqual([2, 1]);
  await close();
  folder.remove();
});
