import { collection, insert, update, type Op, type OrganizationDocument, type Store } from 'platform/store/store.ts';
import { foldName } from '../organizations/rules.ts';
import type { Scope } from './scopes.ts';

export interface ServerTokenRecord extends OrganizationDocument {
  name: string;
  /**
   * Unique in the organization, so that a name belongs to one token at a time: `name:<folded name>` while the token has
   * its name; `id:<id>` after it was revoked, or expired and another token took the name.
   */
  nameSlot: string;
  /** SHA-256 of the value, in hex. */
  hash: string;
  /** The first 8 characters of the value, to recognize the token in a list. */
  hint: string;
  createdAt: string;
  /** Email of the user who created it. */
  createdBy: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
  /** It was revoked together with the runs that it began. */
  runsCancelled?: boolean;
  /** Absent: all. */
  scopes?: Scope[];
  /** Networks from which it may be used, each address/prefix; absent: any. */
  addressRanges?: string[];
}

export const SERVER_TOKENS = collection<ServerTokenRecord>('server_tokens', {
  scope: 'organization',
  columns: { hash: 'text', lastUsedAt: 'text', expiresAt: 'text', revokedAt: 'text' },
  indexes: [{ fields: ['nameSlot'], unique: true }, { fields: ['_id'] }, { fields: ['revokedAt', 'expiresAt'] }],
  platformIndexes: [{ fields: ['hash'], unique: true }],
});

export const slotOfName = (name: string): string => `name:${foldName(name)}`;
const slotOfId = (id: string): string => `id:${id}`;

/** Times are ISO-8601 text of fixed width, so text order is time order. */
export const isExpired = ({ expiresAt }: ServerTokenRecord, now: string): boolean =>
  expiresAt !== null && expiresAt <= now;

export const openServerTokens = (store: Store) => ({
  byId: (organizationId: string, id: string): Promise<ServerTokenRecord | undefined> =>
    store.findOne(organizationId, SERVER_TOKENS, { _id: id }),
  /** The token that has the name. It is not revoked, but may have expired. */
  byName: (organizationId: string, name: string): Promise<ServerTokenRecord | undefined> =>
    store.findOne(organizationId, SERVER_TOKENS, { nameSlot: slotOfName(name) }),

  /** All tokens that have or had the name, also revoked ones: reads all tokens of the organization. */
  everNamed: (organizationId: string, name: string): Promise<ServerTokenRecord[]> =>
    store.find(organizationId, SERVER_TOKENS, { name }),

  /** Newest first. An empty `afterId` starts at the newest. */
  list: (organizationId: string, afterId: string, limit: number): Promise<ServerTokenRecord[]> =>
    store.find(organizationId, SERVER_TOKENS, afterId === '' ? {} : { _id: { lt: afterId } }, {
      sort: [['_id', 'desc']],
      limit,
    }),

  /** The number of tokens that are neither revoked nor expired. */
  async countLive(organizationId: string, now: string): Promise<number> {
    const [withoutExpiry, expiringLater] = await Promise.all([
      store.count(organizationId, SERVER_TOKENS, { revokedAt: null, expiresAt: null }),
      store.count(organizationId, SERVER_TOKENS, { revokedAt: null, expiresAt: { gt: now } }),
    ]);
    return withoutExpiry + expiringLater;
  },

  /**
   * Inserts the token, and takes its name from `expired`. `alsoApply` goes into the same batch.
   * @throws DuplicateKeyError when the id or the name is taken, ExpectationFailedError when what was read has changed
   */
  create: (token: ServerTokenRecord, expired: ServerTokenRecord | undefined, alsoApply: readonly Op[]): Promise<void> =>
    store.apply(token.organizationId, [
      ...(expired
        ? [
            update(
              SERVER_TOKENS,
              { _id: expired._id, nameSlot: expired.nameSlot },
              { set: { nameSlot: slotOfId(expired._id) } },
            ),
          ]
        : []),
      insert(SERVER_TOKENS, token),
      ...alsoApply,
    ]),

  /**
   * Inserts the token under the name of `previous`, which ends by `end`. `alsoApply` goes into the same batch.
   * @throws DuplicateKeyError when the id is taken, ExpectationFailedError when what was read has changed
   */
  replace: (
    { _id, nameSlot, expiresAt, organizationId }: ServerTokenRecord,
    end: Pick<ServerTokenRecord, 'expiresAt' | 'revokedAt'>,
    token: ServerTokenRecord,
    alsoApply: readonly Op[],
  ): Promise<void> =>
    store.apply(organizationId, [
      update(
        SERVER_TOKENS,
        { _id, nameSlot, expiresAt, revokedAt: null },
        { set: { ...end, nameSlot: slotOfId(_id) } },
      ),
      insert(SERVER_TOKENS, token),
      ...alsoApply,
    ]),

  /** @throws ExpectationFailedError when it was revoked meanwhile */
  revoke: (
    { _id, organizationId, revokedAt, runsCancelled }: ServerTokenRecord,
    set: Pick<ServerTokenRecord, 'revokedAt' | 'runsCancelled'>,
    auditEntry: Op,
  ): Promise<void> =>
    store.apply(organizationId, [
      update(
        SERVER_TOKENS,
        { _id, revokedAt, runsCancelled: runsCancelled ?? null },
        { set: { ...set, nameSlot: slotOfId(_id) } },
      ),
      auditEntry,
    ]),
});
export type ServerTokens = ReturnType<typeof openServerTokens>;
