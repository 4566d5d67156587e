import type { DatabaseSync } from 'node:sqlite';
import { fairQueue } from '../../core/fair-queue.ts';
import { unavailable, type ServiceError } from '../../core/errors.ts';

export interface GroupCommit {
  /**
   * Runs `work` on the connection; resolves to its result once it is durable. It may run twice, so it changes nothing
   * but the database. When `work` throws, its own changes are rolled back and the promise rejects with the error; other
   * work is not affected.
   * @throws ServiceError UNAVAILABLE when SQLite fails: nothing was written
   */
  write<R>(work: () => R, from?: Origin): Promise<R>;
  /** Commits all that is waiting now, not at the end of the event-loop turn. */
  flush(): void;
}

/** Whose write it is, and about how many bytes it writes. */
export interface Origin {
  organizationId: string;
  bytes: number;
}
const PLATFORM: Origin = { organizationId: '', bytes: 0 };
/** The writes of one turn make several groups if they are large, so that other work is done between them. */
const GROUP_BYTES = 1_048_576;

interface Write {
  bytes: number;
  work(): unknown;
  resolve(result: never): void;
  reject(error: unknown): void;
  outcome?: { result: unknown } | { error: unknown };
}

/** SQLite failed (disk full, I/O error) and rolled its transaction back: nothing was written. */
export const storeUnavailable = (cause: unknown): ServiceError =>
  unavailable('The document store is not available', cause);
export const isSqliteError = (error: unknown): boolean => (error as { errcode?: number }).errcode !== undefined;

const SQLITE_BUSY = 5;
export const isBusy = (error: unknown): boolean => ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
/** Only a backup locks the file of another process, for some milliseconds (snapshots.ts). */
export const LOCKED_AT_MOST_MS = 5_000;
const LOCKED_PAUSE_MS = 2;
/**
 * After a write has failed, this many groups have savepoints, the repeated one included: where writes keep failing, one
 * group in twenty is repeated.
 */
const SAVEPOINT_GROUPS = 20;

/**
 * Puts the writes of one event-loop turn into one transaction: one sync to disk for all. Those of an organization keep
 * their order; if there are too many bytes for one group, organizations take turns. Only after a write has failed does
 * each have a savepoint, because a savepoint copies every page that is changed after it: the group is rolled back and
 * begun anew, so `work` may run twice.
 */
export function groupCommit(db: DatabaseSync): GroupCommit {
  const waiting = fairQueue<Write>();
  let willCommit = false;
  let lockedSince: number | undefined;
  let groupsWithSavepoints = 0;
  /** A group that was rolled back because one of its writes failed, and is repeated next. */
  let rolledBack: Write[] | undefined;
  // Waiting inside SQLite would block the event loop. What a savepoint may restore is kept in memory; not before the
  // tables are made, because then SQLite would also sort whole indexes there.
  db.exec('PRAGMA busy_timeout = 0; PRAGMA temp_store = MEMORY');
  const [begin, savepoint, undo, keep, commit, rollback] = [
    'BEGIN IMMEDIATE',
    'SAVEPOINT one',
    'ROLLBACK TO one',
    'RELEASE one',
    'COMMIT',
    'ROLLBACK',
  ].map((sql) => db.prepare(sql)) as StatementTuple;

  /** @returns false when it failed, and may have left something */
  function attempt(entry: Write): boolean {
    try {
      entry.outcome = { result: entry.work() };
      return true;
    } catch (error) {
      if (isSqliteError(error)) throw error;
      entry.outcome = { error };
      return false;
    }
  }

  function attemptInSavepoint(entry: Write): void {
    savepoint.run();
    if (!attempt(entry)) undo.run();
    keep.run();
  }

  function takeGroup(): Write[] {
    const group: Write[] = [];
    let bytes = 0;
    for (let next; bytes < GROUP_BYTES && (next = waiting.shift());) {
      group.push(next.item);
      bytes += next.item.bytes;
    }
    return group;
  }

  /** False while another process has locked the file. */
  function hasBegun(): boolean {
    try {
      begin.run();
      lockedSince = undefined;
      return true;
    } catch (error) {
      lockedSince ??= performance.now();
      if (!isBusy(error) || performance.now() - lockedSince > LOCKED_AT_MOST_MS) throw error;
      return false;
    }
  }

  /** @returns false when nothing could begin, because another process has locked the file */
  function commitGroup(): boolean {
    let group = rolledBack;
    try {
      if (!hasBegun()) return false;
      rolledBack = undefined;
      group ??= takeGroup();
      if (groupsWithSavepoints > 0) {
        groupsWithSavepoints -= 1;
        group.forEach(attemptInSavepoint);
        commit.run();
      } else if (group.every(attempt)) {
        commit.run();
      } else {
        rollback.run();
        // Beside a write that was alone there is nothing to repeat.
        if (group.length > 1) {
          groupsWithSavepoints = SAVEPOINT_GROUPS;
          rolledBack = group;
          return commitGroup();
        }
      }
    } catch (cause) {
      rolledBack = undefined;
      if (db.isOpen && db.isTransaction) db.exec('ROLLBACK');
      for (const entry of group ?? takeGroup()) entry.reject(storeUnavailable(cause));
      return true;
    }
    for (const { outcome, resolve, reject } of group) {
      if ('error' in outcome!) reject(outcome.error);
      else resolve(outcome!.result as never);
    }
    return true;
  }

  const isDone = (): boolean => waiting.isEmpty && !rolledBack;

  function flush(): void {
    if (isDone()) return;
    db.exec(`PRAGMA busy_timeout = ${LOCKED_AT_MOST_MS}`);
    while (!isDone()) commitGroup();
    db.exec('PRAGMA busy_timeout = 0');
  }

  function commitNext(): void {
    willCommit = false;
    const couldBegin = isDone() || commitGroup();
    if (!isDone()) commitSoon(couldBegin ? 0 : LOCKED_PAUSE_MS);
  }

  function commitSoon(pauseMs = 0): void {
    if (willCommit) return;
    willCommit = true;
    if (pauseMs === 0) setImmediate(commitNext);
    else setTimeout(commitNext, pauseMs);
  }

  const write = <R>(work: () => R, { organizationId, bytes } = PLATFORM): Promise<R> =>
    new Promise((resolve, reject) => {
      waiting.push(organizationId, { work, resolve, reject, bytes });
      commitSoon();
    });
  return { write, flush };
}

type Statement = ReturnType<DatabaseSync['prepare']>;
type StatementTuple = [Statement, Statement, Statement, Statement, Statement, Statement];
