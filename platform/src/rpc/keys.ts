import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { makeFolder, requireOwnFolder } from '../core/folder.ts';

/** Name of a process -> its public keys (PEM, at most two: the second is for rotation). */
export type Peers = Record<string, string[]>;

export const keyFolderOf = (dataFolder: string): string => join(dataFolder, 'keys');
export const keyFileOf = (keyFolder: string, name: string): string => join(keyFolder, `${name.replace(':', '-')}.key`);
export const peersFileOf = (keyFolder: string): string => join(keyFolder, 'peers.json');

/**
 * Makes an Ed25519 private key (file mode 0600) for every named process that has none, and adds its public key to
 * peers.json.
 * @param names process names; an operator is "operator:<name>"
 * @throws StartError when another user owns or can write the folder
 * @returns true when a public key was added; processes read the file at their start, so running ones need a restart
 */
export function createKeys(keyFolder: string, names: readonly string[]): boolean {
  requireOwnFolder(keyFolder);
  makeFolder(keyFolder);
  const peersFile = peersFileOf(keyFolder);
  const peers: Peers = existsSync(peersFile) ? (JSON.parse(readFileSync(peersFile, 'utf8')) as Peers) : {};
  let changed = false;
  for (const name of names) {
    const keyFile = keyFileOf(keyFolder, name);
    if (!existsSync(keyFile)) {
      const { privateKey } = generateKeyPairSync('ed25519', {
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
        publicKeyEncoding: { type: 'spki', format: 'pem' },
      });
      writeAtomically(keyFile, privateKey);
    }
    const publicKey = createPublicKey(readFileSync(keyFile, 'utf8')).export({ type: 'spki', format: 'pem' }).toString();
    if (peers[name]?.includes(publicKey)) continue;
    peers[name] = [publicKey, ...(peers[name] ?? [])].slice(0, 2);
    changed = true;
  }
  if (changed) writeAtomically(peersFile, `${JSON.stringify(peers, null, 2)}\n`);
  return changed;
}

function writeAtomically(file: string, content: string): void {
  const temporary = `${file}.${process.pid}.new`;
  writeFileSync(temporary, content, { mode: 0o600, flush: true });
  chmodSync(temporary, 0o600);
  renameSync(temporary, file);
}
