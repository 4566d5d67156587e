import { createHash, hash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseJson } from 'platform/core/parse-json.ts';
import { RELEASE } from 'platform/core/release.ts';
import { StartError } from 'platform/core/start-error.ts';
import type { CopyFindings } from 'platform/service/verify-copy.ts';

const PRODUCT = 'agent-and-memory-service';
/** The present format, and the only one so far. */
const FORMAT = 1;
const NAME = 'manifest.json';

/** The databases of a data folder. The first is the one to which all services write. */
export const DATABASES = ['events.db', 'credits.db', 'agents.db', 'memory.db', 'auth.db'];

/** What of a data folder is copied beside the databases, if it is there, and the name in the backup. None is secret. */
export const SMALL_FILES: readonly { path: string; name: string }[] = [
  { path: 'seeded', name: 'seeded' },
  { path: 'keys/revoked.txt', name: 'revoked.txt' },
];

/** One file of a backup; of a database also what it holds. */
export interface BackupFile extends Partial<Pick<CopyFindings, 'rows' | 'chains'>> {
  name: string;
  bytes: number;
  sha256: string;
}
export interface Manifest {
  product: string;
  format: number;
  /** Of the command line that made it. */
  release: string;
  /** ISO-8601 UTC: what was acknowledged before is in it, what was sent afterwards is not. */
  takenAt: string;
  /** Ids of the master keys without which not all of it can be read. */
  masterKeys: string[];
  files: BackupFile[];
}

export const manifestOf = (content: Pick<Manifest, 'takenAt' | 'masterKeys' | 'files'>): Manifest => ({
  product: PRODUCT,
  format: FORMAT,
  release: RELEASE,
  ...content,
});

/** The file of the manifest, which has a checksum of itself. */
export function manifestFile(manifest: Manifest): { name: string; text: string; sha256: string } {
  const sha256 = hash('sha256', JSON.stringify(manifest));
  return { name: NAME, text: `${JSON.stringify({ ...manifest, sha256 }, null, 2)}\n`, sha256 };
}

/** @throws StartError that says why this is no whole backup, or none that this release can restore */
export function readManifest(folder: string): Manifest {
  const file = join(folder, NAME);
  if (!existsSync(file)) throw new StartError(`${folder} is not a backup, or not a whole one: it has no ${NAME}`);
  let written: unknown;
  try {
    written = parseJson(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new StartError(`${file} is damaged: ${(cause as Error).message}`, { cause });
  }
  const { sha256, ...manifest } = (written ?? {}) as Manifest & { sha256?: string };
  if (manifest.product !== PRODUCT) throw new StartError(`${file} is not the manifest of a backup of this product`);
  if (manifest.format !== FORMAT)
    throw new StartError(`${folder} has the format ${manifest.format}, but release ${RELEASE} reads only ${FORMAT}`);
  if (sha256 !== hash('sha256', JSON.stringify(manifest)))
    throw new StartError(`${file} is damaged: it differs from its own checksum`);
  if (isNewer(manifest.release, RELEASE))
    throw new StartError(
      `${folder} was made by release ${manifest.release}, and this is ${RELEASE}: restore it with that release`,
    );
  const listed = manifest.files.map(({ name }) => name);
  const allowed = [...DATABASES, ...SMALL_FILES.map(({ name }) => name)];
  const faults = [
    ...listed.filter((name) => !allowed.includes(name)).map((name) => `no file of a backup is named ${name}`),
    ...listed.filter((name, place) => listed.indexOf(name) < place).map((name) => `it has ${name} twice`),
    ...DATABASES.filter((name) => !listed.includes(name)).map((name) => `it lacks ${name}`),
  ];
  if (faults.length > 0) throw new StartError([`${file} is not the manifest of a backup:`, ...faults].join('\n  '));
  return manifest;
}

/**
 * Compares the files with the manifest. @param onFile is called before each of them
 * @throws StartError with a line for each difference
 */
export async function checkFiles(
  folder: string,
  { files }: Manifest,
  onFile: (name: string) => void = () => undefined,
): Promise<void> {
  const names = new Set([NAME, ...files.map(({ name }) => name)]);
  const faults = readdirSync(folder)
    .filter((name) => !names.has(name))
    .map((name) => `${name} does not belong to it`);
  for (const { name, bytes, sha256 } of files) {
    onFile(name);
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    if (!found) faults.push(`${name} is missing`);
    else if (found.size !== bytes) faults.push(`${name} has ${found.size} bytes in place of ${bytes}`);
    else if ((await sha256Of(join(folder, name))) !== sha256) faults.push(`${name} differs from its checksum`);
  }
  if (faults.length > 0) throw new StartError([`The backup ${folder} is damaged:`, ...faults].join('\n  '));
}

export async function sha256Of(file: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(file), digest);
  return digest.digest('hex');
}

/** Compares versions such as 0.10.2 by their numbers. */
function isNewer(one: string, other: string): boolean {
  const [left, right] = [one, other].map((version) => version.split('.').map(Number)) as [number[], number[]];
  const differing = left.findIndex((number, place) => number !== right[place]);
  return differing !== -1 && left[differing]! > (right[differing] ?? 0);
}
