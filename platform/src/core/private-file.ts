import { chmodSync, existsSync, linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';

function writeTemporary(file: string, content: string): string {
  const temporary = `${file}.${process.pid}.new`;
  writeFileSync(temporary, content, { mode: 0o600, flush: true });
  chmodSync(temporary, 0o600);
  return temporary;
}

/** Replaces a file that only its owner can read. Whoever reads it meanwhile sees the old content or the new one. */
export const writePrivate = (file: string, content: string): void => renameSync(writeTemporary(file, content), file);

/**
 * Leaves a file that is there already, also when another process makes it at the same time.
 * @returns whether it was made
 */
export function createPrivateOnce(file: string, content: string): boolean {
  if (existsSync(file)) return false;
  const temporary = writeTemporary(file, content);
  try {
    linkSync(temporary, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(temporary);
  }
}
