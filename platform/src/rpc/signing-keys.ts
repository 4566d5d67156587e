import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../core/parse-json.ts';
import { isOperator } from './peer-name.ts';

/** What versions before 0.1.0 kept in the folder: a key for each process and operator, to sign its calls. */
export interface SigningKeys {
  files: string[];
  /** The operators that had a key. */
  names: string[];
}

export function signingKeysIn(folder: string): SigningKeys {
  const peers = join(folder, 'peers.json');
  if (!existsSync(peers)) return { files: [], names: [] };
  const keys = readdirSync(folder).filter((file) => file.endsWith('.key'));
  const names = Object.keys(parseJson(readFileSync(peers, 'utf8')) as object).filter(isOperator);
  return { files: [...keys, 'peers.json'].map((file) => join(folder, file)), names };
}

/** Removes them, as nobody uses these private keys; peers.json last, so that an interrupted removal is repeated. */
export function removeSigningKeys({ files }: SigningKeys): string[] {
  for (const file of files) rmSync(file, { force: true });
  return files;
}
