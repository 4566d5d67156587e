import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartError } from './start-error.ts';

/**
 * Makes a folder and its parents, with access for the owner only. Not by Node's recursive mkdir: that never returns
 * where the system answers ENOENT below an existing folder (/proc).
 * @throws StartError when it cannot be made
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it at the same time.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new StartError(`cannot write in the folder ${folder}: ${(error as Error).message}`, { cause: error });
  }
}

const WRITABLE_BY_OTHERS = 0o022;

/**
 * In a folder that another user owns or can write, that user can exchange keys and databases.
 * @throws StartError for such a folder, not for a missing one
 */
export function requireOwnFolder(folder: string): void {
  // A file in its place, or above it, is reported where it is written.
  if (!existsSync(folder)) return;
  const { uid, mode } = statSync(folder);
  if (process.getuid && uid !== process.getuid())
    throw new StartError(`The folder ${folder} belongs to another user (uid ${uid}): use one of your own`);
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw new StartError(`Other users can write in the folder ${folder}: run chmod go-w on it`);
}
