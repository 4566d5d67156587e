import { createSecretKey, hash, randomBytes, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isoTime } from './clock.ts';
import { path } from './config.ts';
import { StartError } from './start-error.ts';

const KEY_BYTES = 32;
/** 32 bytes in base64, and perhaps an ISO-8601 time. */
const LINE = /^([\w+/-]{43}=?)(?:[ \t]+(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z))?$/;

/** The setting of every service that stores secrets. */
export const masterKeyFile = path({
  default: '',
  description:
    'File of the keys that seal stored secrets, one a line, newest first: 32 bytes in base64, and perhaps the time ' +
    'from which the key seals; empty: keys/master-key in DATA_DIR. All services and replicas need the same.',
});

export interface MasterKey {
  /** Names the key and tells nothing of it. */
  readonly id: string;
  /** Shows nothing of what it holds when it is printed or logged. */
  readonly secret: KeyObject;
  /** From then on it seals; before, it only opens. Milliseconds since the epoch, 0 where the file names no time. */
  readonly sealsFrom: number;
}

/** The line of a new master key. @param sealsFrom milliseconds since the epoch; without it, the key seals at once */
export const makeMasterKey = (sealsFrom?: number): string =>
  `${randomBytes(KEY_BYTES).toString('base64')}${sealsFrom === undefined ? '' : ` ${isoTime(sealsFrom)}`}\n`;

/** @throws StartError when the file cannot be read */
export function readMasterKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(
      `The master key cannot be read from ${file} (${(cause as Error).message}); ` +
        'set MASTER_KEY_FILE, or make one with "npm run admin -- keys create"',
      { cause },
    );
  }
}

/**
 * @param text what the file holds
 * @returns at least one key, in the order of the file
 * @throws StartError that names the line and shows nothing of it
 */
export function masterKeysIn(text: string, file: string): readonly MasterKey[] {
  const keys = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const [, key = '', from] = LINE.exec(line.trim()) ?? [];
    const bytes = Buffer.from(key, 'base64');
    const sealsFrom = from === undefined ? 0 : Date.parse(from);
    if (bytes.length !== KEY_BYTES || Number.isNaN(sealsFrom))
      throw new StartError(
        `${file} does not hold a master key in line ${index + 1}: ${KEY_BYTES} bytes in base64, and perhaps the time ` +
          'from which it seals',
      );
    return [{ id: idOf(bytes), secret: createSecretKey(bytes), sealsFrom }];
  });
  if (keys.length === 0) throw new StartError(`${file} does not hold a master key: ${KEY_BYTES} bytes in base64`);
  return keys;
}

/** The key that seals at this time: the newest whose time has come. */
export const sealingKeyAt = (keys: readonly MasterKey[], nowMs: number): MasterKey =>
  keys.find(({ sealsFrom }) => sealsFrom <= nowMs) ?? keys.at(-1)!;

const idOf = (bytes: Buffer): string =>
  hash('sha256', Buffer.concat([Buffer.from('id of a master key '), bytes])).slice(0, 12);
