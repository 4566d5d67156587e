import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from 'platform/start-error.ts';
import { lockFile } from 'platform/store/file-lock.ts';

/** Makes the folder and holds it until this process ends. @throws StartError when it cannot be written or another start holds it */
export function claimDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`The data folder ${folder} cannot be made: ${(error as Error).message}`, { cause: error });
  }
  lockFile(join(folder, 'launcher'), `The data folder ${folder} is in use by another start`);
}
