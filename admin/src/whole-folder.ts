import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder, requireOwnFolder } from 'platform/core/folder.ts';
import { StartError } from 'platform/core/start-error.ts';

/**
 * Fills a new folder, which only its owner can read, under another name, syncs it to disk and only then gives it its
 * name: a folder of this name is whole, also when this process is killed or the machine stops.
 * @param target must be missing or empty
 * @throws StartError when it cannot be made; then nothing of it is kept
 */
export async function makeWholeFolder<T>(target: string, fill: (folder: string) => Promise<T>): Promise<T> {
  if (lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new StartError(`${target} is a symbolic link: give the folder to which it leads`);
  if (existsSync(target)) {
    requireOwnFolder(target);
    if (contentsOf(target).length > 0)
      throw new StartError(`${target} is not empty: give a folder that is new or empty`);
  }
  const incomplete = `${target}.incomplete`;
  makeFolder(dirname(target));
  try {
    mkdirSync(incomplete, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new StartError(
        `${incomplete} is there: another run fills it, or one was interrupted. If none runs, remove it`,
      );
    throw unwritable(target, error);
  }
  try {
    const result = await fill(incomplete);
    for (const file of readdirSync(incomplete, { recursive: true, encoding: 'utf8' })) sync(join(incomplete, file));
    sync(incomplete);
    renameSync(incomplete, target);
    sync(dirname(target));
    return result;
  } catch (error) {
    rmSync(incomplete, { recursive: true, force: true });
    throw isOfSystem(error) ? unwritable(target, error) : error;
  }
}

function contentsOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw unwritable(folder, error);
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Of a file or of SQLite. */
const isOfSystem = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException).syscall !== undefined || (error as { errcode?: number }).errcode !== undefined;

const unwritable = (folder: string, cause: unknown): StartError =>
  new StartError(`${folder} cannot be written: ${(cause as Error).message}`, { cause });
