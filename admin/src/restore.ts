import { copyFileSync, chmodSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { masterKeysIn, readMasterKeyFile } from 'platform/core/master-key.ts';
import { writePrivate } from 'platform/core/private-file.ts';
import { StartError } from 'platform/core/start-error.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { checkFiles, DATABASES, readManifest, SMALL_FILES, type Manifest } from './backup-manifest.ts';
import type { Context } from './context.ts';
import { differences, findingsOf } from './copy-findings.ts';
import { progressNotes, type Progress } from './progress.ts';
import { makeWholeFolder } from './whole-folder.ts';

interface RestoreOptions {
  masterKey?: string;
  withoutMasterKey?: boolean;
}

export function restoreCommand(context: Context): Command {
  return new Command('restore')
    .description(
      'make a data folder of a backup, after checking all of it, for a start with DATA_DIR=<folder>. The start makes ' +
        'new certificates; bring the file of the master key of that time',
    )
    .argument('<backup>', 'a folder that "backup" has made')
    .argument('<folder>', 'the data folder to make')
    .option('--master-key <file>', 'the file of the master key, which is copied')
    .option('--without-master-key', 'restore, although what is sealed (secrets of agents, keys of JWTs) is lost then')
    .action(async (backup: string, folder: string, options: RestoreOptions) => {
      const [source, target] = [context.pathOf(backup), context.pathOf(folder)];
      const manifest = readManifest(source);
      const masterKey = masterKeyFor(manifest, options.masterKey && context.pathOf(options.masterKey), options);
      const progress = progressNotes(context.note);
      await makeWholeFolder(target, (incomplete) => restore(source, manifest, incomplete, masterKey, progress));
      const { takenAt, release } = manifest;
      context.printRecord({ folder: target, takenAt, release, masterKey: masterKey !== undefined });
      context.note(
        `Start it with DATA_DIR=${target}. What was revoked after ${takenAt} is valid again: revoke it anew.`,
      );
    });
}

/**
 * The text of the file of the master key, if it is needed.
 * @throws StartError when it holds not all keys that are needed, or is not given
 */
function masterKeyFor(
  { masterKeys }: Manifest,
  file: string | undefined,
  { withoutMasterKey }: RestoreOptions,
): string | undefined {
  if (file === undefined) {
    if (masterKeys.length === 0 || withoutMasterKey) return undefined;
    throw new StartError(
      `The backup holds what is sealed under the master key ${masterKeys.join(', ')}, which is not in it: give its file ` +
        'with --master-key, or give up what is sealed with --without-master-key',
    );
  }
  const text = readMasterKeyFile(file);
  const held = masterKeysIn(text, file).map(({ id }) => id);
  const missing = masterKeys.filter((id) => !held.includes(id));
  if (missing.length > 0 && !withoutMasterKey)
    throw new StartError(`${file} does not hold the master key ${missing.join(', ')}, only ${held.join(', ')}`);
  return text;
}

async function restore(
  source: string,
  manifest: Manifest,
  target: string,
  masterKey: string | undefined,
  progress: Progress,
): Promise<void> {
  await checkFiles(source, manifest, (name) => progress(`Comparing ${name} with its checksum`));
  const keys = keyFolderOf(target);
  mkdirSync(keys, { mode: 0o700 });
  if (masterKey !== undefined) writePrivate(masterKeyFileOf(keys), masterKey);
  const wrong: string[] = [];
  for (const file of manifest.files) {
    const { name } = file;
    const path = join(target, SMALL_FILES.find((small) => small.name === name)?.path ?? name);
    copyFileSync(join(source, name), path, constants.COPYFILE_EXCL);
    chmodSync(path, 0o600);
    if (!DATABASES.includes(name)) continue;
    progress(`Checking ${name}`);
    wrong.push(...differences(file, await findingsOf(path, name)));
  }
  if (wrong.length > 0) throw new StartError(['The backup is not what its manifest says:', ...wrong].join('\n  '));
}
