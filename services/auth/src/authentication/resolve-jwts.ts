import { isoTime } from 'platform/core/clock.ts';
import { fairCache } from 'platform/core/fair-cache.ts';
import type { Config } from '../config.ts';
import type { GrantRecord } from '../grants/store.ts';
import { acceptedKeysAt } from '../signing-keys/rules.ts';
import type { SigningKeyRecord, SigningKeys } from '../signing-keys/store.ts';
import { tierOf } from '../tiers.ts';
import type { MembershipRecord } from '../users/store.ts';
import type { JwtLookup } from './jwt-lookup.ts';
import type { KnownBearer, ResolveBearers } from './known-bearer.ts';
import { claimedOrganization, isTimely, kidOf, verifyJwt, type Claims } from './verify-jwt.ts';

/** For bearers of about 700 characters and their claims: about 10,000. */
const VERIFIED_BYTES = 12_000_000;
/** What a remembered JWT takes beside its text. */
const CLAIMS_BYTES = 500;

interface Needs {
  jwtLookup: JwtLookup;
  signingKeys: Pick<SigningKeys, 'all'>;
  config: Pick<Config, 'JWT_ISSUER'>;
}

/**
 * JWTs of users: one read of signing keys, one of grants and one of memberships. That a signature is right is
 * remembered, because it stays right; whether its key, grant and membership are is read each time.
 */
export function resolveJwts({ jwtLookup, signingKeys, config }: Needs): ResolveBearers {
  /** By bearer: a signature is checked once, because that takes longer than the rest of a request. */
  const verified = fairCache<Claims>(VERIFIED_BYTES);

  async function claimsOf(bearer: string, key: SigningKeyRecord): Promise<Claims | undefined> {
    const known = verified.get(claimedOrganization(bearer), bearer);
    if (known) return known;
    const claims = await verifyJwt(bearer, key, config.JWT_ISSUER);
    if (claims) verified.set(claims.organizationId, bearer, claims, bearer.length + CLAIMS_BYTES);
    return claims;
  }

  return async (bearers, { nowMs }) => {
    const candidates = bearers.flatMap((bearer) => {
      const kid = kidOf(bearer);
      return kid === undefined ? [] : [{ bearer, kid }];
    });
    if (candidates.length === 0) return new Map();
    const keys = new Map(acceptedKeysAt(await signingKeys.all(), nowMs).map((key) => [key._id, key]));
    const ours = (
      await Promise.all(
        candidates.map(async ({ bearer, kid }) => {
          const key = keys.get(kid);
          const claims = key && (await claimsOf(bearer, key));
          return claims && isTimely(claims, nowMs) ? [{ bearer, claims }] : [];
        }),
      )
    ).flat();
    const [grants, memberships] = await Promise.all([
      jwtLookup.grants([...new Set(ours.map(({ claims }) => claims.grantId))]),
      jwtLookup.memberships([...new Set(ours.map(({ claims }) => claims.userId))]),
    ]);
    const now = isoTime(nowMs);
    return new Map(
      ours.flatMap(({ bearer, claims }): [string, KnownBearer][] => {
        const { organizationId, userId, grantId } = claims;
        const grant = grants.find(({ _id }) => _id === grantId);
        const membership = memberships.find((one) => one.organizationId === organizationId && one.userId === userId);
        if (!grant || grant.organizationId !== organizationId || grant.userId !== userId) return [];
        return [[bearer, knownUser(grant, membership, now)]];
      }),
    );
  };
}

/** Roles and groups are those that the user has now, not those in the JWT. */
const knownUser = (grant: GrantRecord, membership: MembershipRecord | undefined, now: string): KnownBearer => ({
  organizationId: grant.organizationId,
  valid: membership !== undefined && grant.revokedAt === null && grant.expiresAt > now,
  principalIn: ({ tier }) => ({
    kind: 'USER',
    organizationId: grant.organizationId,
    subject: grant.userId,
    name: membership?.email ?? grant.email,
    roles: membership?.roles ?? [],
    groups: membership?.groups ?? [],
    tier,
    limits: { ...tierOf(tier).limits },
    via: '',
    memoryTypes: [],
    scopes: [],
  }),
});
