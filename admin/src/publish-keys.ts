import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from 'platform/core/folder.ts';
import { createKeys, identityFilesOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import type { ClusterSecrets } from './cluster-secrets.ts';

/** Holds the whole folder, with the key of the authority. No process mounts it. */
const FOLDER_SECRET = 'key-folder';

/**
 * Does what `createKeys` does for the folder that a cluster keeps, and gives each process a secret of its own: its
 * certificate, its private key, and the accepted authorities. A run that is interrupted is completed by the next one.
 * @param folder an empty one
 * @param operator "operator:cluster", whose certificate the pods of the command line get
 * @returns the names that got a new certificate, and the secrets that were written
 */
export async function publishKeys(
  folder: string,
  names: readonly string[],
  operator: string,
  secrets: ClusterSecrets,
): Promise<{ issued: string[]; written: string[] }> {
  makeFolder(folder);
  for (const [file, content] of Object.entries((await secrets.read(FOLDER_SECRET)) ?? {}))
    writeFileSync(join(folder, file), content, { mode: 0o600 });
  const { issued } = await createKeys(folder, [...names, operator]);
  const written: string[] = [];
  const write = async (name: string, files: Record<string, Buffer>): Promise<void> => {
    if ((await secrets.write(name, files)) === 'written') written.push(name);
  };
  // first, so that nobody has a certificate whose authority is lost
  await write(
    FOLDER_SECRET,
    Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))])),
  );
  await write('master-key', { 'master-key': readFileSync(masterKeyFileOf(folder)) });
  for (const name of [...names, operator])
    await write(`${name === operator ? 'operator' : name}-keys`, filesOf(folder, name));
  return { issued, written };
}

/** By the names that cert-manager gives them, too. */
function filesOf(folder: string, name: string): Record<string, Buffer> {
  const { certFile, caFile } = identityFilesOf(folder, name);
  const pem = readFileSync(certFile, 'utf8');
  const partOf = (label: RegExp): Buffer =>
    Buffer.from(
      (pem.match(new RegExp(`-----BEGIN (${label.source})-----[^-]+-----END \\1-----\n?`, 'g')) ?? []).join(''),
    );
  return {
    'tls.crt': partOf(/CERTIFICATE/),
    'tls.key': partOf(/PRIVATE KEY/),
    'ca.crt': readFileSync(caFile),
  };
}
