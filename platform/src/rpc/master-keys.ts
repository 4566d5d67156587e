import { isoTime } from '../core/clock.ts';
import { makeMasterKey, masterKeysIn, readMasterKeyFile, sealingKeyAt, type MasterKey } from '../core/master-key.ts';
import { writePrivate } from '../core/private-file.ts';
import { StartError } from '../core/start-error.ts';

/** A call that sealed under the key before has ended by then. */
const CALLS_ENDED_MS = 60_000;

/**
 * Adds a key in front of those in the file. It seals only after the overlap: by then, every process can open with it.
 * @returns all keys, newest first
 * @throws StartError when the newest key does not seal yet
 */
export function rotateMasterKey(file: string, overlapMs: number, now = Date.now()): readonly MasterKey[] {
  const text = readMasterKeyFile(file);
  const [newest] = masterKeysIn(text, file) as [MasterKey];
  if (newest.sealsFrom > now)
    throw new StartError(`${file} has a new key already: ${newest.id} seals from ${isoTime(newest.sealsFrom)}`);
  const rotated = makeMasterKey(now + overlapMs) + text;
  const keys = masterKeysIn(rotated, file);
  writePrivate(file, rotated);
  return keys;
}

export interface Retirement {
  newest: MasterKey;
  older: readonly MasterKey[];
  /** Removes the older keys from the file. @throws StartError when the file has changed since */
  finish(): void;
}

/** @throws StartError when the newest key has not sealed for long enough */
export function planRetirement(file: string, now = Date.now()): Retirement {
  const text = readMasterKeyFile(file);
  const [newest, ...older] = masterKeysIn(text, file) as [MasterKey, ...MasterKey[]];
  if (older.length > 0 && sealingKeyAt([newest, ...older], now - CALLS_ENDED_MS) !== newest)
    throw new StartError(
      `The newest key ${newest.id} seals from ${isoTime(newest.sealsFrom)}; the older ones can be retired a minute later`,
    );
  return {
    newest,
    older,
    finish() {
      if (readMasterKeyFile(file) !== text) throw new StartError(`${file} was changed meanwhile; run this again`);
      writePrivate(file, `${text.split('\n').find((line) => line.trim() !== '')}\n`);
    },
  };
}
