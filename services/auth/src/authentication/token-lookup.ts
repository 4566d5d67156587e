import { update, type PlatformStore } from 'platform/store/store.ts';
import type { Use } from './last-used.ts';
import { SERVER_TOKENS, type ServerTokenRecord } from '../server-tokens/store.ts';

const BATCH = 500;

/** Finds server tokens across organizations, because a bearer value does not name its organization. */
export const openTokenLookup = (platformStore: PlatformStore) => ({
  /** Tokens by hash. One read for all hashes, and no read for none. */
  async byHashes(hashes: readonly string[]): Promise<ReadonlyMap<string, ServerTokenRecord>> {
    const found = hashes.length === 0 ? [] : await platformStore.find(SERVER_TOKENS, { hash: { in: hashes } });
    return new Map(found.map((token) => [token.hash, token]));
  },

  /** Those of these tokens that were revoked together with their runs. One read for all ids, and no read for none. */
  async withCancelledRuns(ids: readonly string[]): Promise<ServerTokenRecord[]> {
    const found = ids.length === 0 ? [] : await platformStore.find(SERVER_TOKENS, { _id: { in: ids } });
    return found.filter(({ runsCancelled }) => runsCancelled === true);
  },

  /** Sets `lastUsedAt` of a token that was never used before; any other keeps its own. */
  markFirstUse: (tokenId: string, at: string): Promise<void> =>
    platformStore.apply([
      update(SERVER_TOKENS, { _id: tokenId, lastUsedAt: null }, { set: { lastUsedAt: at } }, { optional: true }),
    ]),

  /** Moves `lastUsedAt` forward, never back. Tokens that were never used are left to `markFirstUse`. */
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
