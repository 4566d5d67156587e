import { newId } from 'platform/core/ids.ts';
import { keyIdOf, type Sealing } from 'platform/core/sealing.ts';
import {
  collection,
  insert,
  remove,
  update,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';

/** A secret of an organization. Its values are sealed for this organization and name, and open for no other. */
export interface SecretRecord extends OrganizationDocument {
  name: string;
  sealed: string;
  /** The value before, which is used beside this one until `until`, ISO-8601. */
  previous: { sealed: string; until: string } | null;
  /** The id of the master key under which all of it is sealed; null or absent: of several, or not known. */
  sealedUnder?: string | null;
  revision: number;
  createdAt: string;
  updatedAt: string;
}

export const SECRETS = collection<SecretRecord>('secrets', {
  scope: 'organization',
  indexes: [{ fields: ['name'], unique: true }],
  platformIndexes: [{ fields: ['sealedUnder'] }],
});

export type Secrets = ReturnType<typeof openSecrets>;

export const purposeOf = ({ organizationId, name }: Pick<SecretRecord, 'organizationId' | 'name'>): string =>
  `secret ${organizationId} ${name}`;

/** The values as a record has them, with what follows from them. */
export function sealedValues({ sealed, previous }: Pick<SecretRecord, 'sealed' | 'previous'>) {
  const id = keyIdOf(sealed);
  const isOfOneKey = !previous || keyIdOf(previous.sealed) === id;
  return { sealed, previous, sealedUnder: (isOfOneKey && id) || null };
}

export function openSecrets(store: Store, sealing: Pick<Sealing, 'seal' | 'open'>) {
  const byName = (organizationId: string, name: string) => store.findOne(organizationId, SECRETS, { name });
  return {
    byName,
    /** Sorted by name. */
    list: (organizationId: string) => store.find(organizationId, SECRETS, {}, { sort: [['name', 'asc']] }),

    /**
     * The values that are valid at this time, the newest first; none when there is no such secret.
     * @throws ServiceError UNAVAILABLE when one was sealed under a master key that this process does not have
     */
    async values(organizationId: string, name: string, now: string): Promise<string[]> {
      const record = await byName(organizationId, name);
      if (!record) return [];
      const { sealed, previous } = record;
      const open = (text: string): string => sealing.open(purposeOf(record), text);
      return [open(sealed), ...(previous && previous.until > now ? [open(previous.sealed)] : [])];
    },

    /**
     * Writes a new secret, or a new value of `existing`.
     * @param given.previousUntil until when the value before is used, too; undefined: no longer
     * @throws DuplicateKeyError, ExpectationFailedError: another writer was first
     */
    async set(
      organizationId: string,
      {
        existing,
        name,
        value,
        previousUntil,
        now,
      }: { existing: SecretRecord | undefined; name: string; value: string; previousUntil?: string; now: string },
      audit: Op,
    ): Promise<SecretRecord> {
      const changed = {
        ...sealedValues({
          sealed: sealing.seal(purposeOf({ organizationId, name }), value),
          previous: existing && previousUntil !== undefined ? { sealed: existing.sealed, until: previousUntil } : null,
        }),
        updatedAt: now,
      };
      if (existing) {
        await store.apply(organizationId, [
          update(SECRETS, expected(existing), { set: changed, increment: { revision: 1 } }),
          audit,
        ]);
        return { ...existing, ...changed };
      }
      const created = { _id: newId(), organizationId, name, revision: 1, createdAt: now, ...changed };
      await store.apply(organizationId, [insert(SECRETS, created), audit]);
      return created;
    },

    delete: (secret: SecretRecord, audit: Op) =>
      store.apply(secret.organizationId, [remove(SECRETS, expected(secret)), audit]),
  };
}

/** That nobody has changed the secret since it was read. */
export const expected = ({ _id, organizationId, revision }: SecretRecord) => ({ _id, organizationId, revision });
