import type { Attempt, AuthenticateRequest, AuthenticateResponse, Decision } from 'proto/auth/v1/auth.ts';
import type { Status } from 'proto/google/rpc/status.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { actorOf, type Principal } from 'platform/core/principal.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { MethodOptions } from 'platform/rpc/method-options.ts';
import { toStatus } from 'platform/rpc/wire-errors.ts';
import type { Deps } from '../deps.ts';
import { tierOf } from '../tiers.ts';
import { denialReason } from './access.ts';
import type { KnownBearer, ResolveGiven } from './known-bearer.ts';
import { isAskedAlone } from './resolve-callback-tokens.ts';

/** Whom a bearer authenticates. */
interface Bearer extends Pick<KnownBearer, 'use' | 'restrictionOn'> {
  principal: Principal;
  /** False when it is revoked or expired, or its organization is deactivated. */
  valid: boolean;
}

type Needs = Pick<
  Deps,
  'clock' | 'organizations' | 'tokenLookup' | 'resolvers' | 'lastUsed' | 'denials' | 'methodOptions'
>;

/**
 * Decides all requests ("attempts") that a gateway collected in one turn of its event loop, from what the store has
 * now. Each form of bearer has a resolver, which takes a fixed number of reads for all attempts, and none for a bearer
 * whose form is wrong; organizations take one more. A denial is a value in the response, never a thrown error: first
 * 401, the same for every cause, then 403 for the tier, the kind, the role, the token's address ranges or its scopes.
 * A first use is written at once, so that a used token is never listed as unused; the job `last-used` writes others.
 * Only attempts of that token wait for the write: among attempts of other tokens they get `askAlone` instead, and so do
 * those with a bearer about which another service is asked.
 * @throws ServiceError when a read fails, or the write of a first use
 */
export async function authenticate(
  deps: Needs,
  { attempts }: AuthenticateRequest,
  { deadline, signal }: Pick<CallContext, 'deadline' | 'signal'>,
): Promise<AuthenticateResponse> {
  const nowMs = deps.clock.now();
  const now = isoTime(nowMs);
  const distinct = [...new Set(attempts.map(({ bearer }) => bearer))];
  const alone = new Set(distinct.length > 1 ? distinct.filter(isAskedAlone) : []);
  const others = distinct.filter((bearer) => !alone.has(bearer));
  const bearers = await findBearers(deps, others, { nowMs, attempts, deadline, signal });
  const mustAskAlone = ({ valid, use }: Bearer): boolean => valid && use?.isFirst === true && distinct.length > 1;
  for (const bearer of bearers.values()) {
    const { valid, use } = bearer;
    if (!valid || !use || mustAskAlone(bearer)) continue;
    if (use.isFirst) await deps.tokenLookup.markFirstUse(use.tokenId, now);
    deps.lastUsed.note({ tokenId: use.tokenId, at: now });
  }
  const decisions = attempts.map((attempt): Decision => {
    const bearer = bearers.get(attempt.bearer);
    const isAlone = alone.has(attempt.bearer) || (bearer && mustAskAlone(bearer));
    return isAlone ? { askAlone: true } : decide(deps, attempt, bearer, now);
  });
  return { decisions };
}

/** By value, without those that are malformed or unknown. */
async function findBearers(
  { organizations, resolvers }: Needs,
  distinct: readonly string[],
  given: ResolveGiven,
): Promise<ReadonlyMap<string, Bearer>> {
  const found = (await Promise.all(resolvers.map((resolve) => resolve(distinct, given)))).flatMap((known) => [
    ...known,
  ]);
  const organizationIds = new Set(found.map(([, { organizationId }]) => organizationId));
  const organizationsById = await organizations.byIds([...organizationIds]);
  return new Map(
    found.flatMap(([value, { organizationId, valid, principalIn, ...rest }]) => {
      const organization = organizationsById.get(organizationId);
      if (!organization) return [];
      const principal = principalIn(organization);
      return [[value, { principal, valid: valid && organization.state === 'active', ...rest }]];
    }),
  );
}

/** Records the denial of a known bearer. One of an unknown bearer belongs to no organization's audit trail. */
function decide(deps: Needs, attempt: Attempt, bearer: Bearer | undefined, time: string): Decision {
  if (!bearer) return { denial: denialStatus('UNAUTHENTICATED') };
  const { principal, valid } = bearer;
  const denial = valid
    ? denialOf(deps.methodOptions.get(attempt.method), attempt, bearer)
    : ['UNAUTHENTICATED' as const];
  if (!denial) return { principal };
  const [reason, message] = denial;
  deps.denials.note({
    organizationId: principal.organizationId,
    actor: actorOf(principal),
    code: codeOf(reason),
    target: valid ? { type: 'method', id: attempt.method } : undefined,
    requestId: attempt.requestId,
    time,
  });
  return { denial: denialStatus(reason, message) };
}

/** Why a valid bearer may not call the method, and in which words if not the usual ones. */
function denialOf(
  options: MethodOptions | undefined,
  { address }: Attempt,
  { principal, restrictionOn }: Bearer,
): readonly [reason: KnownReason, message?: string] | undefined {
  const reason = denialReason(options, principal, tierOf(principal.tier));
  if (reason) return [reason];
  const restriction = restrictionOn?.(options?.scope ?? '', address ?? '');
  return restriction === undefined ? undefined : ['FORBIDDEN', restriction];
}

function denialStatus(reason: KnownReason, message?: string): Status {
  const headers: Record<string, string> = reason === 'UNAUTHENTICATED' ? { 'WWW-Authenticate': 'Bearer' } : {};
  return toStatus(new ServiceError(reason, message, { headers }));
}
