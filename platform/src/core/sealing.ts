import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { path } from './config.ts';
import { StartError } from './start-error.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The setting of every service that stores secrets. */
export const masterKeyFile = path({
  default: '',
  description:
    'File of the key that seals stored secrets: 32 bytes in base64; empty: keys/master-key in DATA_DIR. All services and ' +
    'replicas need the same.',
});

/** Keeps secrets unreadable in the store: AES-256-GCM under the master key. */
export interface Sealing {
  /** @param purpose what the secret is and whose; it opens with the same purpose only */
  seal(purpose: string, secret: string): string;
  /** @throws Error when it was sealed under another key or for another purpose, or was changed */
  open(purpose: string, sealed: string): string;
}

/** A new master key, as its file holds it. */
export const makeMasterKey = (): string => `${randomBytes(KEY_BYTES).toString('base64')}\n`;

/** @throws StartError when the file cannot be read or holds no key */
export function openSealing(file: string): Sealing {
  const key = readMasterKey(file);
  return {
    seal(purpose, secret) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(purpose));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64');
    },
    open(purpose, sealed) {
      const bytes = Buffer.from(sealed, 'base64');
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    },
  };
}

function readMasterKey(file: string): Buffer {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(
      `The master key cannot be read from ${file} (${(cause as Error).message}); ` +
        'set MASTER_KEY_FILE, or make one with "npm run admin -- keys create"',
      { cause },
    );
  }
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== KEY_BYTES)
    throw new StartError(`${file} does not hold a master key: ${KEY_BYTES} bytes in base64`);
  return key;
}
