import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { makeFolder, requireOwnFolder } from '../../core/folder.ts';
import { StartError } from '../../core/start-error.ts';
import { useWriteAheadLog } from '../../store/sqlite/database.ts';
import { isBusy } from '../../store/sqlite/group-commit.ts';
import { noteRelease } from '../../store/sqlite/written-by.ts';

const GIVE_UP_MS = 10_000;

/**
 * A connection to a database that other processes write, too. While one of them holds the lock, work is retried outside
 * SQLite, because waiting inside SQLite would block the event loop. It rejects with SQLITE_BUSY after 10 seconds.
 */
export interface SharedConnection {
  readonly db: DatabaseSync;
  read<T>(work: () => T): Promise<T>;
  /**
   * Runs `work` in a durable transaction, which it shares with the other writes of its event-loop turn: either all are
   * written or all reject. It must be synchronous and may run several times.
   */
  write<T>(work: () => T): Promise<T>;
}

/**
 * Opens the file; makes it and its folder when missing.
 * @param prepare makes what is missing in the file, in one transaction
 * @param options.isOld true for a file that `prepare` upgrades: while another process does so, which may take minutes,
 * this one waits
 * @throws StartError when it cannot be used
 */
export async function openSharedFile(
  file: string,
  prepare: (db: DatabaseSync) => void,
  { isOld = () => false, giveUpMs = GIVE_UP_MS }: { isOld?: (db: DatabaseSync) => boolean; giveUpMs?: number } = {},
): Promise<SharedConnection> {
  requireOwnFolder(dirname(file));
  let db: DatabaseSync | undefined;
  try {
    makeFolder(dirname(file));
    const open = (db = new DatabaseSync(file, { timeout: 0 }));
    await whenUnlocked(() => useWriteAheadLog(open), giveUpMs);
    await whenUnlocked(
      () =>
        inTransaction(open, () => {
          noteRelease(open);
          prepare(open);
        }),
      giveUpMs,
      () => isOld(open),
    );
    return connectionOf(open);
  } catch (cause) {
    if (db?.isOpen) db.close();
    throw new StartError(`The event file ${file} cannot be opened: ${(cause as Error).message}`, { cause });
  }
}

interface Write {
  work(): unknown;
  resolve(result: never): void;
  reject(error: unknown): void;
}

function connectionOf(db: DatabaseSync): SharedConnection {
  let waiting: Write[] = [];

  async function commitWaiting(): Promise<void> {
    const group = waiting;
    waiting = [];
    try {
      const results = await whenUnlocked(() => inTransaction(db, () => group.map(({ work }) => work())));
      for (const [place, { resolve }] of group.entries()) resolve(results[place] as never);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  return {
    db,
    read: (work) => whenUnlocked(work),
    write: (work) =>
      new Promise((resolve, reject) => {
        if (waiting.push({ work, resolve, reject }) === 1) setImmediate(() => void commitWaiting());
      }),
  };
}

function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** @param mayLast true while the lock may be held for long; the time to give up begins after that */
async function whenUnlocked<T>(work: () => T, giveUpMs = GIVE_UP_MS, mayLast = () => false): Promise<T> {
  let deadline = performance.now() + giveUpMs;
  for (;;) {
    let waits = false;
    try {
      waits = mayLast();
      return work();
    } catch (error) {
      if (!isBusy(error) || (performance.now() > deadline && !waits)) throw error;
    }
    if (waits) deadline = performance.now() + giveUpMs;
    await delay(1 + Math.random() * 9);
  }
}
