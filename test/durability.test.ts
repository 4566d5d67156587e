import { basename } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { OPERATOR, operator, startProgram, type RunningProgram } from 'platform/service/testing.ts';
import { program as agents } from '../services/agents/src/service.ts';
import { program as auth } from '../services/auth/src/service.ts';
import { program as credits } from '../services/credits/src/service.ts';
import { program as memory } from '../services/memory/src/service.ts';

/** SQLite's number for `synchronous=FULL`. */
const FULL = 2;
/** Two connections write credits.db: that of the ledger and that of the job leases. */
const WRITTEN = [
  'agents.db',
  'auth.db',
  'credits.db',
  'credits.db',
  'memory.db',
  ...Array<string>(4).fill('events.db'),
];

const { prepare, exec } = DatabaseSync.prototype;
const WRITES = /^\s*(COMMIT|END|RELEASE|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER)\b/i;

/** Adds every connection of this process that writes from now on; the result ends it. */
function watchWriters(writers: Set<DatabaseSync>): () => void {
  DatabaseSync.prototype.prepare = function (sql, ...options) {
    if (WRITES.test(sql)) writers.add(this);
    return prepare.call(this, sql, ...options);
  };
  DatabaseSync.prototype.exec = function (sql) {
    if (WRITES.test(sql)) writers.add(this);
    return exec.call(this, sql);
  };
  return () => void Object.assign(DatabaseSync.prototype, { prepare, exec });
}

// A kill cannot show this: the operating system keeps what a killed process has written. Only a power cut would.
it('every connection that writes a file of the embedded engines syncs it to disk at each commit', async () => {
  const writers = new Set<DatabaseSync>();
  const stopWatching = watchWriters(writers);
  const running: RunningProgram[] = [];
  try {
    running.push(await startProgram(credits), await startProgram(auth), await startProgram(memory));
    const [ledger] = running as [RunningProgram];
    running.push(await startProgram(agents, { CREDITS_ADDRESS: ledger.address }));
    const grant = { id: newId(), amountMicros: 5, note: '' };
    await ledger.client(CreditsServiceService, OPERATOR).grant(grant, ledger.as(operator(newId())));
    for (const one of running) expect((await one.runJob('relay')).ran).toBe(true);

    const found = Array.from(writers, (connection) => ({
      file: basename(connection.location() as string),
      synchronous: prepare.call(connection, 'PRAGMA synchronous').get()!.synchronous,
      journal: prepare.call(connection, 'PRAGMA journal_mode').get()!.journal_mode,
    }));
    const byFile = (a: { file: string }, b: { file: string }) => a.file.localeCompare(b.file);
    const expected = WRITTEN.map((file) => ({ file, synchronous: FULL, journal: 'wal' }));
    expect(found.sort(byFile)).toEqual(expected.sort(byFile));
  } finally {
    stopWatching();
    for (const one of running.reverse()) await one.stop();
  }
});
