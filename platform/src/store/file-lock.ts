import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../start-error.ts';

const SQLITE_BUSY = 5;
/** A database that nobody refers to is collected, and its lock goes with it. */
const held = new Set<DatabaseSync>();

/**
 * Owns `path` until `release` or the end of this process, kill -9 included: SQLite holds an OS-level lock on
 * `<path>.lock`. Makes the folder of `path` when it is missing.
 * @throws StartError when another process owns it or the folder cannot be written
 */
export function lockFile(path: string): { release(): void } {
  const lock = openLock(path);
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) throw new StartError(`${path} is in use by another process`);
    throw unwritable(path, error);
  }
  held.add(lock);
  return { release: () => void (held.delete(lock) && lock.close()) };
}

function openLock(path: string): DatabaseSync {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return new DatabaseSync(`${path}.lock`);
  } catch (error) {
    throw unwritable(path, error);
  }
}

const unwritable = (path: string, cause: unknown): StartError =>
  new StartError(`cannot write in the folder ${dirname(path)}: ${(cause as Error).message}`, { cause });
