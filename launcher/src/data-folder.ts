import { join } from 'node:path';
import { lockFile } from 'platform/store/sqlite/file-lock.ts';

/** Makes the folder and holds it until this process ends. @throws StartError when it cannot be written or another start holds it */
export function claimDataFolder(folder: string): void {
  lockFile(join(folder, 'launcher'), `The data folder ${folder} is in use by another start`);
}
