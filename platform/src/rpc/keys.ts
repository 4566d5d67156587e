import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { makeFolder } from '../core/folder.ts';

/** Name of a process -> its public keys (PEM, at most two: the second is for rotation). */
export type Peers = Record<string, string[]>;

export const keyFolderOf = (dataFolder: string): string => join(dataFolder, 'keys');
export const keyFileOf = (keyFolder: string, name: string): string => join(keyFolder, `${name.replace(':', '-')}.key`);
export const peersFileOf = (keyFolder: string): string => join(keyFolder, 'peers.json');

/**
 * Gives every named process an Ed25519 key of its own (0600) and writes the file of public keys. Keys that are there stay.
 * @returns true when a key was added: a process that runs already learns of it at its next start
 * @param names process names; an operator is "operator:<name>"
 */
export function createKeys(keyFolder: string, names: readonly string[]): boolean {
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
