import type { DatabaseSync } from 'node:sqlite';
import { ServiceError } from '../../core/errors.ts';

export interface GroupCommit {
  /** Runs `work` on the connection; resolves to its result once it is durable. An error thrown by `work` undoes it alone. */
  write<R>(work: () => R): Promise<R>;
  /** Commits now what waits for the end of the turn. */
  flush(): void;
}

interface Entry {
  work(): unknown;
  resolve(result: never): void;
  reject(error: unknown): void;
  outcome?: { result: unknown } | { error: unknown };
}

/** A fault of the engine (disk full, I/O): its transaction was rolled back, so nothing was done. */
export const unavailable = (cause: unknown): ServiceError =>
  new ServiceError('UNAVAILABLE', 'The document store is not available', { cause });
export const isEngineFault = (error: unknown): boolean => (error as { errcode?: number }).errcode !== undefined;

/** The writes of one event-loop turn in one transaction: one fsync for all of them, a savepoint for each. */
export function groupCommit(db: DatabaseSync): GroupCommit {
  let waiting: Entry[] = [];
  const [begin, savepoint, undo, keep, commit] = [
    'BEGIN IMMEDIATE',
    'SAVEPOINT one',
    'ROLLBACK TO one',
    'RELEASE one',
    'COMMIT',
  ].map((sql) => db.prepare(sql)) as StatementTuple;

  function attempt(entry: Entry): void {
    savepoint.run();
    try {
      entry.outcome = { result: entry.work() };
    } catch (error) {
      if (isEngineFault(error)) throw error;
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
      if (db.isTransaction) db.exec('ROLLBACK');
      for (const entry of group) entry.reject(unavailable(cause));
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
