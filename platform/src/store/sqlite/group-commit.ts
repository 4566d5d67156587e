import type { DatabaseSync } from 'node:sqlite';
import { unavailable, type ServiceError } from '../../core/errors.ts';

export interface GroupCommit {
  /**
   * Runs `work` on the connection; resolves to its result once it is durable. When `work` throws, its own changes are
   * rolled back and the promise rejects with the error; other work is not affected.
   * @throws ServiceError UNAVAILABLE when SQLite fails: nothing was written
   */
  write<R>(work: () => R): Promise<R>;
  /** Commits what is waiting now, not at the end of the event-loop turn. */
  flush(): void;
}

interface Write {
  work(): unknown;
  resolve(result: never): void;
  reject(error: unknown): void;
  outcome?: { result: unknown } | { error: unknown };
}

/** SQLite failed (disk full, I/O error) and rolled its transaction back: nothing was written. */
export const storeUnavailable = (cause: unknown): ServiceError =>
  unavailable('The document store is not available', cause);
export const isSqliteError = (error: unknown): boolean => (error as { errcode?: number }).errcode !== undefined;

/** Puts the writes of one event-loop turn into one transaction: one sync to disk for all, one savepoint for each. */
export function groupCommit(db: DatabaseSync): GroupCommit {
  let waiting: Write[] = [];
  const [begin, savepoint, undo, keep, commit] = [
    'BEGIN IMMEDIATE',
    'SAVEPOINT one',
    'ROLLBACK TO one',
    'RELEASE one',
    'COMMIT',
  ].map((sql) => db.prepare(sql)) as StatementTuple;

  function attempt(entry: Write): void {
    savepoint.run();
    try {
      entry.outcome = { result: entry.work() };
    } catch (error) {
      if (isSqliteError(error)) throw error;
      entry.outcome = { error };
      undo.run();
    }
    keep.run();
  }

  function flush(): void {
    const group = waiting;
    waiting = [];
    if (group.length === 0) return;
    try {
      begin.run();
      group.forEach(attempt);
      commit.run();
    } catch (cause) {
      if (db.isOpen && db.isTransaction) db.exec('ROLLBACK');
      for (const entry of group) entry.reject(storeUnavailable(cause));
      return;
    }
    for (const { outcome, resolve, reject } of group) {
      if ('error' in outcome!) reject(outcome.error);
      else resolve(outcome!.result as never);
    }
  }

  const write = <R>(work: () => R): Promise<R> =>
    new Promise((resolve, reject) => {
      if (waiting.push({ work, resolve, reject }) === 1) setImmediate(flush);
    });
  return { write, flush };
}

type Statement = ReturnType<DatabaseSync['prepare']>;
type StatementTuple = [Statement, Statement, Statement, Statement, Statement];
