import { existsSync, mkdirSync } from 'node:fs';
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
