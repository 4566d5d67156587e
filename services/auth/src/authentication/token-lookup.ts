import { update, type PlatformStore } from 'platform/store/store.ts';
import type { Use } from './last-used.ts';
import { SERVER_TOKENS, type ServerToken } from '../server-tokens/store.ts';

const BATCH = 500;

/** Server tokens of whatever organization: a bearer value does not say which. */
export const openTokenLookup = (platformStore: PlatformStore) => ({
  /** By hash, in one read; none for an empty list. */
  async byHashes(hashes: readonly string[]): Promise<ReadonlyMap<string, ServerToken>> {
    const found = hashes.length === 0 ? [] : await platformStore.find(SERVER_TOKENS, { hash: { in: hashes } });
    return new Map(found.map((token) => [token.hash, token]));
  },

  /** Only where it says "never" still. */
  markFirstUse: (tokenIds: readonly string[], at: string): Promise<void> =>
    platformStore.apply(
      tokenIds.map((_id) =>
        update(SERVER_TOKENS, { _id, lastUsedAt: null }, { set: { lastUsedAt: at } }, { optional: true }),
      ),
    ),

  /** Only where it moves forward. */
  async markUses(uses: readonly Use[]): Promise<void> {
    for (let start = 0; start < uses.length; start += BATCH) {
      const batch = uses.slice(start, start + BATCH);
      await platformStore.apply(
        batch.map(({ tokenId, at }) =>
          update(
            SERVER_TOKENS,
            { _id: tokenId, lastUsedAt: { lt: at } },
            { set: { lastUsedAt: at } },
            { optional: true },
          ),
        ),
      );
    }
  },
});
export type TokenLookup = ReturnType<typeof openTokenLookup>;
