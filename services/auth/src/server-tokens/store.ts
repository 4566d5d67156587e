import { collection, insert, update, type Op, type OrganizationDocument, type Store } from 'platform/store/store.ts';
import { foldName } from '../organizations/rules.ts';

export interface ServerToken extends OrganizationDocument {
  name: string;
  /** Unique in the organization: the folded name until the token is revoked, then its id. */
  nameSlot: string;
  /** SHA-256 of the value, in hex. */
  hash: string;
  hint: string;
  createdAt: string;
  /** Email of the user who made it. */
  createdBy: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
}

export const SERVER_TOKENS = collection<ServerToken>('server_tokens', {
  scope: 'organization',
  indexes: [{ fields: ['nameSlot'], unique: true }, { fields: ['_id'] }, { fields: ['revokedAt', 'expiresAt'] }],
  platformIndexes: [{ fields: ['hash'], unique: true }],
});

export const slotOfName = (name: string): string => `name:${foldName(name)}`;
const slotOfId = (id: string): string => `id:${id}`;

/** Times are fixed-width ISO-8601, so text order is time order. */
export const isExpired = ({ expiresAt }: ServerToken, now: string): boolean => expiresAt !== null && expiresAt <= now;

export const openServerTokens = (store: Store) => ({
  byId: (organizationId: string, id: string): Promise<ServerToken | undefined> =>
    store.findOne(organizationId, SERVER_TOKENS, { _id: id }),
  /** The token that holds the name: not revoked, but it may have expired. */
  byName: (organizationId: string, name: string): Promise<ServerToken | undefined> =>
    store.findOne(organizationId, SERVER_TOKENS, { nameSlot: slotOfName(name) }),

  /** Newest first; an empty `afterId` starts at the newest. */
  list: (organizationId: string, afterId: string, limit: number): Promise<ServerToken[]> =>
    store.find(organizationId, SERVER_TOKENS, afterId === '' ? {} : { _id: { lt: afterId } }, {
      sort: [['_id', 'desc']],
      limit,
    }),

  /** Neither revoked nor expired. */
  async countLive(organizationId: string, now: string): Promise<number> {
    const [lasting, expiring] = await Promise.all([
      store.count(organizationId, SERVER_TOKENS, { revokedAt: null, expiresAt: null }),
      store.count(organizationId, SERVER_TOKENS, { revokedAt: null, expiresAt: { gt: now } }),
    ]);
    return lasting + expiring;
  },

  /** `expired` gives its name to the new token; `riders` are what the caller expects and records. */
  insert: (token: ServerToken, expired: ServerToken | undefined, riders: readonly Op[]): Promise<void> =>
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
      ...riders,
    ]),

  revoke: ({ _id, organizationId }: ServerToken, revokedAt: string, audit: Op): Promise<void> =>
    store.apply(organizationId, [
      update(SERVER_TOKENS, { _id, revokedAt: null }, { set: { revokedAt, nameSlot: slotOfId(_id) } }),
      audit,
    ]),
});
export type ServerTokens = ReturnType<typeof openServerTokens>;
