import type { Attempt, AuthenticateRequest, AuthenticateResponse, Decision } from 'proto/auth/v1/auth.ts';
import type { Status } from 'proto/google/rpc/status.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { actorOf, type Principal } from 'platform/core/principal.ts';
import { toStatus } from 'platform/rpc/wire-errors.ts';
import type { Deps } from '../deps.ts';
import type { OrganizationRecord } from '../organizations/store.ts';
import { hashToken, isWellFormed } from '../server-tokens/rules.ts';
import { isExpired, type ServerTokenRecord } from '../server-tokens/store.ts';
import { tierOf } from '../tiers.ts';
import { denialReason } from './access.ts';

/** A token that is in the store, and whom it authenticates. */
interface KnownToken {
  token: ServerTokenRecord;
  principal: Principal;
  /** False when it is revoked or expired, or its organization is deactivated. */
  valid: boolean;
}

type Needs = Pick<Deps, 'clock' | 'organizations' | 'tokenLookup' | 'lastUsed' | 'denials' | 'methodOptions'>;

/**
 * Decides all requests ("attempts") that a gateway collected in one turn of its event loop, from what the store has
 * now. It takes at most two reads for all of them, and none for a token with a wrong checksum. A denial is a value in
 * the response, never a thrown error: first 401, the same for every cause, then 403 for the tier, the kind or the role.
 * A first use is written at once, so that a used token is never listed as unused; the job `last-used` writes others.
 * Only attempts of that token wait for the write: among attempts of other tokens they get `askAlone` instead.
 * @throws ServiceError when a read fails, or the write of a first use
 */
export async function authenticate(deps: Needs, { attempts }: AuthenticateRequest): Promise<AuthenticateResponse> {
  const now = isoTime(deps.clock.now());
  const knownTokens = await findTokens(deps, attempts, now);
  const ofOneToken = new Set(attempts.map(({ bearer }) => bearer)).size === 1;
  const mustAskAlone = ({ valid, token }: KnownToken): boolean => valid && token.lastUsedAt === null && !ofOneToken;
  for (const known of knownTokens.values()) {
    const { valid, token } = known;
    if (!valid || mustAskAlone(known)) continue;
    if (token.lastUsedAt === null) await deps.tokenLookup.markFirstUse(token._id, now);
    deps.lastUsed.note({ tokenId: token._id, at: now });
  }
  const decisions = attempts.map((attempt): Decision => {
    const known = knownTokens.get(attempt.bearer);
    return known && mustAskAlone(known) ? { askAlone: true } : decide(deps, attempt, known, now);
  });
  return { decisions };
}

/** Tokens by bearer value, without those that are malformed or unknown. */
async function findTokens(
  { organizations, tokenLookup }: Needs,
  attempts: readonly Attempt[],
  now: string,
): Promise<ReadonlyMap<string, KnownToken>> {
  const bearers = [...new Set(attempts.map(({ bearer }) => bearer))].filter(isWellFormed);
  const hashes = bearers.map(hashToken);
  const tokens = await tokenLookup.byHashes(hashes);
  const organizationIds = new Set(Array.from(tokens.values(), ({ organizationId }) => organizationId));
  const organizationsById = await organizations.byIds([...organizationIds]);
  const knownTokens = new Map<string, KnownToken>();
  bearers.forEach((bearer, index) => {
    const token = tokens.get(hashes[index]!);
    const organization = token && organizationsById.get(token.organizationId);
    if (!organization) return;
    const valid = organization.state === 'active' && token.revokedAt === null && !isExpired(token, now);
    knownTokens.set(bearer, { token, principal: tokenPrincipal(token, organization), valid });
  });
  return knownTokens;
}

const tokenPrincipal = (token: ServerTokenRecord, { tier }: OrganizationRecord): Principal => ({
  kind: 'SERVER_TOKEN',
  organizationId: token.organizationId,
  subject: token._id,
  name: token.name,
  roles: [],
  groups: [],
  tier,
  limits: { ...tierOf(tier).limits },
  via: '',
});

/** Records the denial of a known token. One of an unknown token belongs to no organization's audit trail. */
function decide(
  { methodOptions, denials }: Needs,
  { method, requestId }: Attempt,
  known: KnownToken | undefined,
  time: string,
): Decision {
  if (!known) return { denial: denialStatus('UNAUTHENTICATED') };
  const { principal, valid } = known;
  const reason = valid ? denialReason(methodOptions.get(method), principal, tierOf(principal.tier)) : 'UNAUTHENTICATED';
  if (!reason) return { principal };
  const target = valid ? { type: 'method', id: method } : undefined;
  denials.note({
    organizationId: principal.organizationId,
    actor: actorOf(principal),
    code: codeOf(reason),
    target,
    requestId,
    time,
  });
  return { denial: denialStatus(reason) };
}

function denialStatus(reason: KnownReason): Status {
  const headers: Record<string, string> = reason === 'UNAUTHENTICATED' ? { 'WWW-Authenticate': 'Bearer' } : {};
  return toStatus(new ServiceError(reason, undefined, { headers }));
}
