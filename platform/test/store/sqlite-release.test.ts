import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeLog } from 'platform/core/log.ts';
import { RELEASE } from 'platform/core/release.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { DEAD_LETTER_RETENTION_MS } from 'platform/events/bus.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { noteRelease } from 'platform/store/sqlite/written-by.ts';
import { ITEMS } from './store-suite.ts';

describe('a SQLite file', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());
  let files = 0;
  /** A file that these releases have opened, one after the other. */
  function openedBy(...releases: readonly string[]): string {
    const file = join(folder.path, `${files++}.db`);
    const db = new DatabaseSync(file);
    for (const release of releases) noteRelease(db, release);
    db.close();
    return file;
  }
  const outcome = (file: string, release: string): string => {
    const db = new DatabaseSync(file);
    try {
      noteRelease(db, release);
      return 'opened';
    } catch (error) {
      return (error as Error).message;
    } finally {
      db.close();
    }
  };

  it.each([
    ['no release', [], '0.2.0'],
    ['an earlier release', ['0.1.0'], '0.9.0'],
    ['the release itself', ['0.2.0'], '0.2.0'],
    ['the next release', ['0.3.7'], '0.2.0'],
    ['a release of an earlier major number', ['1.30.0'], '2.0.0'],
  ])('that %s has written is opened', (_which, releases, release) =>
    expect(outcome(openedBy(...releases), release)).toBe('opened'),
  );

  it.each([
    ['the release after the next', ['0.4.0'], '0.2.1', '0.4.0', '0.3'],
    ['a release of a later major number', ['2.0.12'], '1.7.0', '2.0.12', '1.8'],
    ['the release after the next, and then the next', ['0.4.3', '0.3.0'], '0.2.0', '0.4.3', '0.3'],
  ])('that %s has written is refused', (_which, releases, release, by, upTo) =>
    expect(outcome(openedBy(...releases), release)).toBe(
      `release ${by} has written it, and this is release ${release}, which opens files of releases up to ${upTo}`,
    ),
  );

  describe('of a release that is far later is refused with a sentence, and stays as it is', () => {
    const bus = { log: makeLog('test', 'silent'), leaseMs: 1_000, deadLetterRetentionMs: DEAD_LETTER_RETENTION_MS };
    it.each<[string, (file: string) => unknown]>([
      ['by the store', (file) => openSqliteStore(file, [ITEMS])],
      ['by the event bus', (file) => openSqliteBus(file, bus)],
    ])('%s', async (_who, open) => {
      const file = openedBy('999.0.0');
      await expect((async () => open(file))()).rejects.toMatchObject({
        name: 'StartError',
        message: expect.stringMatching(new RegExp(`${file}.*release 999.0.0 has written it.* ${RELEASE}, which`)),
      });
      const db = new DatabaseSync(file);
      expect(db.prepare('SELECT name FROM sqlite_schema').all()).toEqual([]);
      db.close();
    });
  });
});
