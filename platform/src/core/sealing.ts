import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { machineClock, type Clock } from './clock.ts';
import { unavailable } from './errors.ts';
import { followFiles } from './followed-files.ts';
import type { Log } from './log.ts';
import { masterKeysIn, readMasterKeyFile, sealingKeyAt, type MasterKey } from './master-key.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** The id of a key behind what it has sealed. */
const KEY_ID = /=([0-9a-f]{12})$/;

/** Keeps secrets unreadable in the store: AES-256-GCM under a master key. */
export interface Sealing {
  /** @param purpose what the secret is and whose; it opens with the same purpose only */
  seal(purpose: string, secret: string): string;
  /**
   * @throws ServiceError UNAVAILABLE when it was sealed under a key that this process does not have, perhaps not yet;
   * Error when it was changed, or sealed for another purpose
   */
  open(purpose: string, sealed: string): string;
  /** The id of the key that seals now. */
  sealsUnder(): string;
  /**
   * `present`: sealed under the key that seals now, or under one that will. `older`: it opens, and should be sealed
   * anew. `lost`: it does not open.
   */
  ageOf(purpose: string, sealed: string): 'present' | 'older' | 'lost';
  /** Whether the file is right now. If not, this process keeps the keys that it has read, and no other can start. */
  hasFile(): boolean;
  /** Looks no longer whether the file has changed. */
  close(): void;
}

/** The id of the key under which a text is sealed; undefined: a release before ids has sealed it. */
export const keyIdOf = (sealed: string): string | undefined => KEY_ID.exec(sealed)?.[1];

/**
 * Seals under the keys of a file, and notices when it changes.
 * @throws StartError when the file cannot be read or holds no key
 */
export function openSealing(
  file: string,
  { clock = machineClock, log }: { clock?: Clock; log?: Log | undefined } = {},
): Sealing {
  const followed = followFiles({
    read: () => ({ text: readMasterKeyFile(file) }),
    load: ({ text }) => masterKeysIn(text, file),
    log,
    warning: 'the changed file of the master key is not used',
  });
  const keyOf = (id: string) => followed.current().find((key) => key.id === id);
  const sealingKey = () => sealingKeyAt(followed.current(), clock.now());
  function open(purpose: string, sealed: string): string {
    const id = keyIdOf(sealed);
    if (id === undefined) return openByAny(followed.current(), purpose, sealed);
    // Another replica may have read the file a moment earlier.
    if (!keyOf(id)) followed.look();
    const key = keyOf(id);
    if (!key) throw sealedElsewhere(`the key ${id} is not in ${file}`);
    return openBy(key, purpose, sealed);
  }
  return {
    seal(purpose, secret) {
      // a key that has just taken the place of a lost one is used at once
      followed.look();
      const key = sealingKey();
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, key.secret, iv).setAAD(Buffer.from(purpose));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      const sealed = Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64');
      // A decoder of base64 stops at "=", so the release before can open it, too.
      return `${sealed.replace(/=+$/, '')}=${key.id}`;
    },
    open,
    sealsUnder: () => sealingKey().id,
    ageOf(purpose, sealed) {
      const keys = followed.current();
      const id = keyIdOf(sealed);
      if (keys.slice(0, keys.indexOf(sealingKey()) + 1).some((key) => key.id === id)) return 'present';
      try {
        open(purpose, sealed);
        return 'older';
      } catch {
        return 'lost';
      }
    },
    hasFile: followed.look,
    close: followed.close,
  };
}

function openBy({ secret }: MasterKey, purpose: string, sealed: string): string {
  const bytes = Buffer.from(sealed.replace(KEY_ID, ''), 'base64');
  const decipher = createDecipheriv(CIPHER, secret, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
}

/** What the release before has sealed does not say under which key. */
function openByAny(keys: readonly MasterKey[], purpose: string, sealed: string): string {
  let cause: unknown;
  for (const key of keys) {
    try {
      return openBy(key, purpose, sealed);
    } catch (error) {
      cause = error;
    }
  }
  throw sealedElsewhere(cause);
}

const sealedElsewhere = (cause: unknown) =>
  unavailable('A stored secret is sealed under a master key that this process does not have', cause);
