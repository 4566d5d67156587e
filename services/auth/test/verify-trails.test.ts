import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { verifyCopy } from 'platform/service/verify-copy.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { openAuditEntries } from '../src/audit/store.ts';
import { COLLECTIONS } from '../src/deps.ts';
import { program } from '../src/service.ts';

describe('a look at a copy of the audit trails', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'auth.db');
  const [first, second] = [newId(), newId()];
  const inFirst = `organizationId = x'${first.replaceAll('-', '')}'`;
  const trail = `The audit trail of the organization ${first}`;
  const entryOf = (organizationId: string, day: number) => ({
    ...{ _id: newId(), organizationId, at: `2030-01-0${day}T00:00:00.000Z`, action: 'user.create', outcome: 'success' },
    ...{ actorKind: 'operator', actorId: 'ada', actorName: 'ada', actorVia: '', targetType: null, targetId: null },
    ...{ code: null, count: 1, requestId: '' },
  });
  beforeAll(async () => {
    const { store, platformStore, close } = await openSqliteStore(file, COLLECTIONS);
    const entries = openAuditEntries(store, platformStore);
    await entries.append([1, 2, 3, 4, 5].flatMap((day) => [entryOf(first, day), entryOf(second, day)]));
    // what is past its retention is no fault
    await entries.cutChain(first, '2030-01-02T00:00:00.000Z', 10);
    await close();
  });
  afterAll(() => folder.remove());

  it('finds nothing wrong with whole ones, and says where they end', async () => {
    expect(await verifyCopy(file, program.copy)).toMatchObject({
      rows: { audit_entries: 9, audit_heads: 2 },
      chains: { organizations: 2, links: 9, ends: expect.stringMatching(/^[0-9a-f]{64}$/) },
      masterKeys: [],
      faults: [],
    });
  });

  it.each([
    [
      'changed',
      `UPDATE audit_entries SET outcome = 'denied' WHERE ${inFirst} AND sequence = 3`,
      'has an entry 3 that was changed',
    ],
    ['removed', `DELETE FROM audit_entries WHERE ${inFirst} AND sequence = 3`, 'has no entries 3 to 3'],
    [
      'cut off',
      `DELETE FROM audit_entries WHERE ${inFirst} AND sequence = 5`,
      'ends with entry 4, but its head is entry 5',
    ],
    [
      'put behind its end',
      `UPDATE audit_heads SET sequence = 4 WHERE ${inFirst}`,
      'ends with entry 5, but its head is entry 4',
    ],
  ])('finds that an entry was %s', async (_, sql, fault) => {
    const copy = join(folder.path, `${newId()}.db`);
    using db = new DatabaseSync(file);
    db.exec(`VACUUM INTO '${copy}'`);
    using changed = new DatabaseSync(copy);
    changed.exec(sql);
    changed.close();
    expect((await verifyCopy(copy, program.copy)).faults).toEqual([`${trail} ${fault}`]);
  });
});
