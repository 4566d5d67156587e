import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartError } from './start-error.ts';

/**
 * Makes a folder and those above it, for their owner alone. Node's recursive mkdir never returns where the system refuses with
 * ENOENT below a folder that is there (/proc).
 * @throws StartError
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // another process may have been faster
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new StartError(`cannot write in the folder ${folder}: ${(error as Error).message}`, { cause: error });
  }
}
