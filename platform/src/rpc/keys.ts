import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DAY_MS } from '../core/clock.ts';
import { makeFolder, requireOwnFolder } from '../core/folder.ts';
import { RELOAD_MS } from '../core/followed-files.ts';
import { makeMasterKey } from '../core/master-key.ts';
import { createPrivateOnce, writePrivate } from '../core/private-file.ts';
import { StartError } from '../core/start-error.ts';
import { certificatesIn, isIssuedBy, linesOf, type IdentityFiles } from './identity.ts';
import { nameOfSan } from './peer-name.ts';
import { removeSigningKeys, signingKeysIn } from './signing-keys.ts';

// Numbers of ADR 23, as are those of certificates.ts.
const RENEW_BEFORE_MS = 30 * DAY_MS;
const RENEW_AUTHORITY_BEFORE_MS = 365 * DAY_MS;
/** Every running process has read a file that is this old. */
const READ_BY_ALL_MS = 2 * RELOAD_MS;

export const keyFolderOf = (dataFolder: string): string => join(dataFolder, 'keys');
/** Certificate and private key of a process or operator are one file, so that one rename exchanges both. */
const pemFileOf = (folder: string, name: string): string =>
  join(folder, `${encodeURIComponent(name.replace(':', '-'))}.pem`);
/** The authority that issues, and its key. */
const authorityFileOf = (folder: string): string => join(folder, 'authority.pem');
/** The authority that issues after the next rotation. It is accepted already, so no process has to wait for another. */
const nextAuthorityFileOf = (folder: string): string => join(folder, 'next-authority.pem');
const caFileOf = (folder: string): string => join(folder, 'ca.crt');
const revokedFileOf = (folder: string): string => join(folder, 'revoked.txt');

/** The keys under which services seal secrets that they store. */
export const masterKeyFileOf = (folder: string): string => join(folder, 'master-key');

/** The files that a process or operator reads when its settings name no others. */
export const identityFilesOf = (folder: string, name: string): IdentityFiles => ({
  certFile: pemFileOf(folder, name),
  keyFile: pemFileOf(folder, name),
  caFile: caFileOf(folder),
  revokedFile: revokedFileOf(folder),
});

export interface ChangedKeys {
  /** Names that got a new certificate. */
  issued: string[];
  /** There were certificates and no master key, so another one was made. */
  missedMasterKey: boolean;
  /** Files of versions before 0.1.0, which signed calls instead, that were removed. */
  removed: string[];
}

/**
 * Makes what is missing: an authority, the next one, a certificate for every name, and the master key; all files have
 * mode 0600. Renews what ends soon. Of several callers at once, all use the authority of the first.
 * @param names of processes and operators ("operator:ada")
 * @param now milliseconds since the epoch
 * @throws StartError when another user owns or can write the folder, the authority's key is not there, or a name is
 *   revoked
 */
export async function createKeys(folder: string, names: readonly string[], now = Date.now()): Promise<ChangedKeys> {
  requireOwnFolder(folder);
  makeFolder(folder);
  const revoked = names.find((name) => revokedNames(folder).includes(name));
  if (revoked) throw new StartError(`${revoked} is revoked (${revokedFileOf(folder)}), and no other may have its name`);
  createPrivateOnce(revokedFileOf(folder), '');
  const had = issuedNames(folder);
  const missedMasterKey = createPrivateOnce(masterKeyFileOf(folder), makeMasterKey()) && had.length > 0;
  const old = signingKeysIn(folder);
  const due = [...new Set([...names, ...old.names, ...had])].filter((name) => isDue(folder, name, now));
  if (due.length > 0 || existsSync(authorityFileOf(folder))) await createAuthorities(folder, now);
  const authority = existsSync(authorityFileOf(folder)) && readAuthority(authorityFileOf(folder));
  if (authority && endsWithin(authority.certificate, RENEW_AUTHORITY_BEFORE_MS, now))
    return { issued: await rotateKeys(folder, names, now), missedMasterKey, removed: [] };
  await issue(folder, due, now);
  return { issued: due, missedMasterKey, removed: removeSigningKeys(old) };
}

/**
 * Issues a new certificate for everyone, by the next authority, and makes another next one. What the authorities of
 * before have issued stays accepted until `finishRotation`. Running processes read the new files by themselves.
 * @param names besides all that have a certificate
 * @returns the names
 */
export async function rotateKeys(folder: string, names: readonly string[], now = Date.now()): Promise<string[]> {
  await createAuthorities(folder, now);
  await untilReadByAll(nextAuthorityFileOf(folder));
  const everyone = [...new Set([...names, ...issuedNames(folder)])];
  const { makeAuthority } = await import('./certificates.ts');
  const next = await makeAuthority(now);
  publishAuthorities(folder, [...acceptedAuthorities(folder, now), new X509Certificate(next)]);
  renameSync(nextAuthorityFileOf(folder), authorityFileOf(folder));
  writePrivate(nextAuthorityFileOf(folder), next);
  await issue(folder, everyone, now);
  return everyone;
}

/**
 * Ends the overlap of a rotation: what earlier authorities have issued is refused from now on.
 * @throws StartError when somebody has no certificate of the present authority yet
 */
export async function finishRotation(folder: string): Promise<void> {
  const { certificate } = readAuthority(authorityFileOf(folder));
  for (const name of issuedNames(folder)) {
    const file = pemFileOf(folder, name);
    if (!isIssuedBy(readCertificate(file), certificate))
      throw new StartError(
        `${name} has a certificate of an earlier authority: run "npm run admin -- keys rotate" first`,
      );
    await untilReadByAll(file);
  }
  publishAuthorities(folder, [certificate, readCertificate(nextAuthorityFileOf(folder))]);
}

/**
 * Every process refuses this operator from its next call on, also on an open connection. The name is never used again.
 * @returns false when the folder has no certificate of this operator
 */
export function revokeOperator(folder: string, name: string): boolean {
  const names = new Set([...revokedNames(folder), name]);
  writePrivate(revokedFileOf(folder), [...names].map((each) => `${each}\n`).join(''));
  const known = existsSync(pemFileOf(folder, name));
  rmSync(pemFileOf(folder, name), { force: true });
  return known;
}

async function createAuthorities(folder: string, now: number): Promise<void> {
  const files = [authorityFileOf(folder), nextAuthorityFileOf(folder)];
  if (!existsSync(authorityFileOf(folder)) && existsSync(caFileOf(folder)))
    throw new StartError(`The key of the authority is not in ${folder}; make certificates where it is`);
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length > 0) {
    const { makeAuthority } = await import('./certificates.ts');
    for (const file of missing) createPrivateOnce(file, await makeAuthority(now));
  }
  const accepted = acceptedAuthorities(folder, now);
  const both = files.map(readCertificate);
  if (both.some((one) => !accepted.some(({ fingerprint256 }) => fingerprint256 === one.fingerprint256)))
    publishAuthorities(folder, [...accepted, ...both]);
}

async function issue(folder: string, names: readonly string[], now: number): Promise<void> {
  if (names.length === 0) return;
  const { issueCertificate } = await import('./certificates.ts');
  const authority = readAuthority(authorityFileOf(folder));
  for (const name of names) writePrivate(pemFileOf(folder, name), await issueCertificate(authority, name, now));
}

function readAuthority(file: string) {
  return { certificate: readCertificate(file), key: createPrivateKey(readFileSync(file, 'utf8')) };
}
function readCertificate(file: string): X509Certificate {
  try {
    return new X509Certificate(readFileSync(file));
  } catch (cause) {
    throw new StartError(`There is no readable certificate in ${file} (${(cause as Error).message})`, { cause });
  }
}

const acceptedAuthorities = (folder: string, now: number): X509Certificate[] =>
  existsSync(caFileOf(folder))
    ? certificatesIn(readFileSync(caFileOf(folder), 'utf8')).filter((one) => !endsWithin(one, 0, now))
    : [];

function publishAuthorities(folder: string, authorities: readonly X509Certificate[]): void {
  const unique = new Map(authorities.map((one) => [one.fingerprint256, one.toString()]));
  writePrivate(caFileOf(folder), [...unique.values()].join(''));
}

/** The names of all certificates in the folder. */
const issuedNames = (folder: string): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.pem'))
    .map((file) => nameOfSan(readCertificate(join(folder, file)).subjectAltName))
    .filter((name) => name !== undefined);

function isDue(folder: string, name: string, now: number): boolean {
  const file = pemFileOf(folder, name);
  return !existsSync(file) || endsWithin(readCertificate(file), RENEW_BEFORE_MS, now);
}

const endsWithin = ({ validToDate }: X509Certificate, ms: number, now: number): boolean =>
  validToDate.getTime() - now < ms;

function revokedNames(folder: string): string[] {
  const file = revokedFileOf(folder);
  return existsSync(file) ? linesOf(readFileSync(file, 'utf8')) : [];
}

const untilReadByAll = (file: string): Promise<void> =>
  delay(Math.max(0, statSync(file).mtimeMs + READ_BY_ALL_MS - Date.now()));
