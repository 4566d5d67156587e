import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { ada, RETENTION_MS } from './ledger-harness.ts';
import { faultsOf } from './ledger-invariants.ts';

/**
 * Commits in SQLite's write-ahead log since it was last emptied: the frames that tell how large the database is after
 * them (https://www.sqlite.org/fileformat2.html#walformat).
 */
function commitsIn(log: string): number {
  const bytes = readFileSync(log);
  const pageBytes = bytes.readUInt32BE(8);
  const salts = bytes.subarray(16, 24);
  let commits = 0;
  for (let frame = 32; frame < bytes.length; frame += 24 + pageBytes)
    if (bytes.readUInt32BE(frame + 4) > 0 && bytes.subarray(frame + 8, frame + 16).equals(salts)) commits += 1;
  return commits;
}

describe('the embedded ledger', () => {
  const folder = temporaryFolder();
  afterAll(folder.remove);

  it('writes the calls of one event-loop turn in one commit, each once and in order', async () => {
    const file = join(folder.path, 'credits.db');
    const { ledger, close } = await openSqliteLedger(file, { clock: { now: Date.now }, retentionMs: RETENTION_MS });
    const organizations = Array.from({ length: 3 }, newId);
    for (const organizationId of organizations)
      await ledger.grant(organizationId, { id: newId(), amountMicros: 100, note: '' }, ada);
    const runs = organizations.flatMap((organizationId) =>
      Array.from({ length: 12 }, () => ({ organizationId, id: newId() })),
    );
    const reserve = ({ organizationId, id }: (typeof runs)[number]) =>
      ledger.reserve(organizationId, { id, amountMicros: 10, ttlMs: 60_000, maxOpen: 0 }, ada);
    const commitsOf = async <T>(calls: () => Promise<T>[]): Promise<[commits: number, results: T[]]> => {
      const before = commitsIn(`${file}-wal`);
      const results = await Promise.all(calls());
      return [commitsIn(`${file}-wal`) - before, results];
    };

    const [reserving, reserved] = await commitsOf(() => [...runs, ...runs].map(reserve));
    expect(reserving).toBe(1);
    // Of 100 credits each, ten runs got ten; their repeats in the same commit changed nothing.
    const outcomes = reserved.map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'RESERVED')).toHaveLength(2 * 30);
    expect(outcomes.filter((outcome) => outcome === 'INSUFFICIENT')).toHaveLength(2 * 6);

    const open = runs.filter((_, i) => outcomes[i] === 'RESERVED');
    const [settling] = await commitsOf(() =>
      [...open, ...open].map(({ organizationId, id }, i) => ledger.settle(organizationId, id, i < 30 ? 7 : 10, ada)),
    );
    expect(settling).toBe(1);
    for (const organizationId of organizations) {
      expect(await ledger.balance(organizationId)).toMatchObject({ spentMicros: 70, reservedMicros: 0, sequence: 21 });
      expect(await faultsOf(ledger, organizationId)).toEqual([]);
    }
    await close();
  });
});
