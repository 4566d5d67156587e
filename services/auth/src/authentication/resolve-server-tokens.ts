import { isoTime } from 'platform/core/clock.ts';
import { isInRanges } from 'platform/core/address-ranges.ts';
import { hashToken, isWellFormed, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { isExpired, type ServerTokenRecord } from '../server-tokens/store.ts';
import { tierOf } from '../tiers.ts';
import type { KnownBearer, ResolveBearers } from './known-bearer.ts';
import type { TokenLookup } from './token-lookup.ts';

/** Server tokens: one read, and none for a token with a wrong checksum. */
export const resolveServerTokens =
  ({ tokenLookup }: { tokenLookup: TokenLookup }): ResolveBearers =>
  async (bearers, { nowMs }) => {
    const now = isoTime(nowMs);
    const byHash = new Map(
      bearers.filter((bearer) => isWellFormed(SERVER_TOKEN, bearer)).map((bearer) => [hashToken(bearer), bearer]),
    );
    const tokens = await tokenLookup.byHashes([...byHash.keys()]);
    return new Map(Array.from(tokens, ([hash, token]) => [byHash.get(hash) as string, knownToken(token, now)]));
  };

const knownToken = (token: ServerTokenRecord, now: string): KnownBearer => ({
  organizationId: token.organizationId,
  valid: token.revokedAt === null && !isExpired(token, now),
  principalIn: ({ tier }) => ({
    kind: 'SERVER_TOKEN',
    organizationId: token.organizationId,
    subject: token._id,
    name: token.name,
    roles: [],
    groups: [],
    tier,
    limits: { ...tierOf(tier).limits },
    via: '',
    memoryTypes: [],
    scopes: token.scopes ?? [],
  }),
  restrictionOn(scope, address) {
    if (token.addressRanges && !isInRanges(address, token.addressRanges))
      return 'This server token may not be used from this address';
    if (scope !== '' && token.scopes && !token.scopes.some((one) => one === scope))
      return `This server token does not have the scope ${scope}`;
    return undefined;
  },
  use: { tokenId: token._id, isFirst: token.lastUsedAt === null },
});
