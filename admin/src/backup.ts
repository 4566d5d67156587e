import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Command } from 'commander';
import { isoTime } from 'platform/core/clock.ts';
import { StartError } from 'platform/core/start-error.ts';
import { isLocked } from 'platform/store/sqlite/file-lock.ts';
import { takeSnapshots, type Snapshot } from 'platform/store/sqlite/snapshots.ts';
import {
  DATABASES,
  manifestFile,
  manifestOf,
  sha256Of,
  SMALL_FILES,
  type BackupFile,
  type Manifest,
} from './backup-manifest.ts';
import type { Context, EmbeddedFiles } from './context.ts';
import { differences, findingsOf } from './copy-findings.ts';
import { progressNotes, type Progress } from './progress.ts';
import { makeWholeFolder } from './whole-folder.ts';

export function backupCommand(context: Context): Command {
  return new Command('backup')
    .description(
      'copy the embedded databases of DATA_DIR, as they are together at one instant, into a new folder, while they are ' +
        'served and written or while nothing runs; checks the copies. No key is in it',
    )
    .argument('<folder>', 'the folder to make')
    .action(async (folder: string) => {
      const target = context.pathOf(folder);
      const progress = progressNotes(context.note);
      const { manifest, sha256, lockedMs } = await makeWholeFolder(target, (incomplete) =>
        backUp(context.embeddedFiles(), incomplete, progress),
      );
      const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
      const record = { folder: target, takenAt: manifest.takenAt, bytes, sha256, masterKeys: manifest.masterKeys };
      context.printRecord(
        { ...record, lockedMs, files: manifest.files },
        { ...record, masterKeys: manifest.masterKeys.join(', ') },
      );
    });
}

async function backUp(
  { folder, eventsFile }: EmbeddedFiles,
  target: string,
  progress: Progress,
): Promise<{ manifest: Manifest; sha256: string; lockedMs: number }> {
  requireServed(folder);
  const sources = DATABASES.map((name) => (name === 'events.db' ? eventsFile : join(folder, name)));
  const files: BackupFile[] = [];
  // Before the databases: a first start that marks its end meanwhile is completed by the next start.
  for (const { path, name } of SMALL_FILES)
    if (existsSync(join(folder, path))) files.push(await keep(target, name, readFileSync(join(folder, path), 'utf8')));
  const snapshots = await takeSnapshots(sources);
  try {
    const rows = new Map<string, Record<string, number>>();
    for (const [place, snapshot] of snapshots.files.entries())
      rows.set(DATABASES[place]!, await copy(snapshot, join(target, DATABASES[place]!), progress));
    snapshots.close();
    const masterKeys = new Set<string>();
    for (const name of DATABASES) {
      progress(`Checking ${name}`);
      const found = await findingsOf(join(target, name), name);
      const file = {
        ...(await fileOf(target, name)),
        rows: rows.get(name)!,
        ...(found.chains && { chains: found.chains }),
      };
      const wrong = differences(file, found);
      if (wrong.length > 0) throw new StartError(['The copies differ from the databases:', ...wrong].join('\n  '));
      files.push(file);
      found.masterKeys.forEach((id) => masterKeys.add(id));
    }
    const takenAt = isoTime(snapshots.takenAtMs);
    const manifest = manifestOf({ takenAt, masterKeys: [...masterKeys].sort(), files });
    const { name, text, sha256 } = manifestFile(manifest);
    writeFileSync(join(target, name), text, { mode: 0o600 });
    return { manifest, sha256, lockedMs: snapshots.lockedMs };
  } finally {
    snapshots.close();
  }
}

async function copy(snapshot: Snapshot, target: string, progress: Progress): Promise<Record<string, number>> {
  const rows = snapshot.rows();
  await snapshot.copyTo(target, (share) => progress(`Copying ${basename(target)}: ${Math.floor(share * 100)} %`));
  return rows;
}

async function keep(folder: string, name: string, text: string): Promise<BackupFile> {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return fileOf(folder, name);
}

const fileOf = async (folder: string, name: string): Promise<BackupFile> => ({
  name,
  bytes: statSync(join(folder, name)).size,
  sha256: await sha256Of(join(folder, name)),
});

/**
 * A product that runs on servers may have left databases of an earlier time in its data folder.
 * @throws StartError when the product runs in this folder and does not serve one of its databases
 */
function requireServed(folder: string): void {
  if (!isLocked(join(folder, 'launcher'))) return;
  for (const name of DATABASES.filter((each) => each !== 'events.db'))
    if (!isLocked(join(folder, name)))
      throw new StartError(
        `The product runs in ${folder}, but no process has ${name} open: it is starting, or its data is on a server ` +
          '(docs/operations.md says how to back that up)',
      );
}
