import { closeSync, existsSync, openSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../core/start-error.ts';
import { isBusy } from './group-commit.ts';
import { rowsOfTables } from './rows-of-tables.ts';

/** The states of several databases at one instant. They stay readable as they were, whatever is written meanwhile. */
export interface Snapshots {
  /** Milliseconds since 1970. */
  readonly takenAtMs: number;
  /** For how long nothing could be written. */
  readonly lockedMs: number;
  readonly files: readonly Snapshot[];
  close(): void;
}
export interface Snapshot {
  readonly file: string;
  /** How many rows each table has. */
  rows(): Record<string, number>;
  /**
   * Makes the target, which only its owner can read.
   * @param onProgress is called with the share that is copied, 0 to 1
   */
  copyTo(target: string, onProgress?: (share: number) => void): Promise<void>;
}

/** For so long may the first lock wait for the others; then the writers go on, and it begins anew. */
const LOCKED_AT_MOST_MS = 250;
const GIVE_UP_MS = 30_000;
const PAUSE_MS = 20;
/** A step of a copy: 8 MiB of pages of 4 KiB. */
const PAGES_A_STEP = 2_048;

/**
 * Takes a snapshot of files that other processes may be writing. For some milliseconds it holds the write locks of all
 * of them, so that together they are what a power cut at this instant would leave: nothing in one file is ahead of what
 * another one has. Then nothing is locked: the copies are made from read transactions that began under the locks.
 * @param files the first should be the one for whose lock most processes compete
 * @throws StartError when a file is missing, is no database or stays locked
 */
export async function takeSnapshots(files: readonly string[]): Promise<Snapshots> {
  const opened: DatabaseSync[] = [];
  const close = (): void => opened.splice(0).forEach((one) => one.close());
  const open = (file: string): DatabaseSync => {
    if (!existsSync(file)) throw new StartError(`There is no ${file}`);
    const db = new DatabaseSync(file, { timeout: LOCKED_AT_MOST_MS });
    opened.push(db);
    return db;
  };
  let file = '';
  try {
    const pairs = files.map((each) => {
      file = each;
      const [lock, reader] = [open(each), open(each)];
      // opens the file, and recovers what a killed process has left in its log
      reader.prepare('SELECT count(*) FROM sqlite_schema').get();
      return { file: each, lock, reader };
    });
    for (const giveUpAt = performance.now() + GIVE_UP_MS; ; await delay(PAUSE_MS)) {
      const lockedMs = pinAll(pairs, (each) => (file = each));
      if (lockedMs !== undefined)
        return { takenAtMs: Date.now(), lockedMs, files: pairs.map((pair) => snapshotOf(pair)), close };
      if (performance.now() > giveUpAt) throw new StartError(`${file} has been locked for ${GIVE_UP_MS / 1_000} s`);
    }
  } catch (cause) {
    close();
    if (cause instanceof StartError) throw cause;
    throw new StartError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

interface Pair {
  file: string;
  lock: DatabaseSync;
  reader: DatabaseSync;
}

/** @returns for how long writers waited; undefined when a lock was not to be had in time */
function pinAll(pairs: readonly Pair[], beforeEach: (file: string) => void): number | undefined {
  const from = performance.now();
  try {
    for (const { file, lock } of pairs) {
      beforeEach(file);
      const leftMs = Math.max(1, Math.round(LOCKED_AT_MOST_MS - (performance.now() - from)));
      lock.exec(`PRAGMA busy_timeout = ${leftMs}`);
      lock.exec('BEGIN IMMEDIATE');
    }
    for (const { reader } of pairs) {
      reader.exec('BEGIN');
      reader.prepare('SELECT count(*) FROM sqlite_schema').get();
    }
    return performance.now() - from;
  } catch (error) {
    if (!isBusy(error)) throw error;
    for (const { reader } of pairs) if (reader.isTransaction) reader.exec('ROLLBACK');
    return undefined;
  } finally {
    for (const { lock } of pairs) if (lock.isTransaction) lock.exec('ROLLBACK');
  }
}

const snapshotOf = ({ file, reader }: Pair): Snapshot => ({
  file,
  rows: () => rowsOfTables(reader),
  async copyTo(target, onProgress = () => undefined) {
    closeSync(openSync(target, 'wx', 0o600));
    await backup(reader, target, {
      rate: PAGES_A_STEP,
      progress: ({ totalPages, remainingPages }) => onProgress(1 - remainingPages / totalPages),
    });
    onProgress(1);
  },
});
