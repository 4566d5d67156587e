import {
  collection,
  DuplicateKeyError,
  insert,
  update,
  type Document,
  type PlatformStore,
} from 'platform/store/store.ts';

/** A key pair that signs JWTs of all organizations. */
export interface SigningKeyRecord extends Document {
  /** 1 for the first key; each key follows the one before, and of two made at once only one is stored. */
  generation: number;
  /** The public key: JWK as JSON text. */
  publicKey: string;
  /** The private key: JWK as JSON text, sealed. */
  sealed: string;
  createdAt: string;
  /** From then on it signs, until the key of the next generation does. */
  signsFrom: string;
  /** Its JWTs are refused. */
  withdrawn: boolean;
}

export const SIGNING_KEYS = collection<SigningKeyRecord>('signing_keys', {
  scope: 'platform',
  platformIndexes: [{ fields: ['generation'], unique: true }],
});

/** All generations are read at once: there are as many as rotations. */
const MAX_KEYS = 1_000;

export const openSigningKeys = (platformStore: PlatformStore) => ({
  /** Newest first. */
  all: (): Promise<SigningKeyRecord[]> =>
    platformStore.find(SIGNING_KEYS, { generation: { gt: 0 } }, { sort: [['generation', 'desc']], limit: MAX_KEYS }),
  /** Expects the private key as it was sealed. @throws ExpectationFailedError */
  reseal: ({ _id, sealed: before }: SigningKeyRecord, sealed: string): Promise<void> =>
    platformStore.apply([update(SIGNING_KEYS, { _id, sealed: before }, { set: { sealed } })]),
  /**
   * Stores the key, and withdraws others in the same batch.
   * @returns false when another process has stored one of this generation
   */
  async add(key: SigningKeyRecord, withdrawn: readonly SigningKeyRecord[] = []): Promise<boolean> {
    try {
      await platformStore.apply([
        insert(SIGNING_KEYS, key),
        ...withdrawn.map(({ _id }) => update(SIGNING_KEYS, { _id }, { set: { withdrawn: true } })),
      ]);
      return true;
    } catch (error) {
      if (error instanceof DuplicateKeyError) return false;
      throw error;
    }
  },
});
export type SigningKeys = ReturnType<typeof openSigningKeys>;
