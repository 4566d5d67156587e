import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder } from '../../core/folder.ts';
import { StartError } from '../../core/start-error.ts';

const SQLITE_BUSY = 5;
/** Two that ask at the same instant can refuse each other; one that asks again gets it. */
const ASK_AGAIN_MS = 300;
/** A database that nobody refers to is collected, and its lock goes with it. */
const held = new Set<DatabaseSync>();

/**
 * Owns `path` until `release` or the end of this process, kill -9 included: SQLite holds an OS-level lock on
 * `<path>.lock`. Makes the folder of `path` when it is missing.
 * @throws StartError when another process owns it or the folder cannot be written
 */
export function lockFile(path: string, inUse = `${path} is in use by another process`): { release(): void } {
  const lock = openLock(path);
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) throw new StartError(inUse);
    throw unwritable(path, error);
  }
  held.add(lock);
  return { release: () => void (held.delete(lock) && lock.close()) };
}

function openLock(path: string): DatabaseSync {
  makeFolder(dirname(path));
  try {
    return new DatabaseSync(`${path}.lock`, { timeout: ASK_AGAIN_MS });
  } catch (error) {
    throw unwritable(path, error);
  }
}

const unwritable = (path: string, cause: unknown): StartError =>
  new StartError(`cannot write in the folder ${dirname(path)}: ${(cause as Error).message}`, { cause });
