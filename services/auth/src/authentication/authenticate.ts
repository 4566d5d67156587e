import type { Attempt, AuthenticateRequest, AuthenticateResponse, Decision } from 'proto/auth/v1/auth.ts';
import { isoTime } from 'platform/core/clock.ts';
import { codeOf, ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { actorOf, type Principal } from 'platform/core/principal.ts';
import { toStatus } from 'platform/rpc/wire-errors.ts';
import type { Deps } from '../deps.ts';
import { tierOf } from '../tiers.ts';
import { refusalOf } from './access.ts';
import { hashToken, isWellFormed } from '../server-tokens/rules.ts';
import { isExpired, type ServerToken } from '../server-tokens/store.ts';

/** Who holds a token that is on record, be it valid or not. */
interface Holder {
  token: ServerToken;
  principal: Principal;
  valid: boolean;
}

type Parts = Pick<Deps, 'clock' | 'organizations' | 'tokenLookup' | 'lastUsed' | 'denials' | 'policies'>;

/**
 * Decides the attempts of one gateway turn from what the store holds now: at most two reads for all of them, none for a token
 * whose checksum is wrong. A refusal is a value, never an error: 401 alike for every cause, then tier, then role.
 */
export async function authenticate(deps: Parts, { attempts }: AuthenticateRequest): Promise<AuthenticateResponse> {
  const now = isoTime(deps.clock.now());
  const holders = await holdersOf(deps, attempts, now);
  const decisions = attempts.map((attempt) => decide(deps, attempt, holders.get(attempt.bearer), now));
  await noteUses(
    deps,
    [...holders.values()].filter(({ valid }) => valid),
    now,
  );
  return { decisions };
}

/** Holders by bearer value; absent: malformed or unknown. */
async function holdersOf(
  { organizations, tokenLookup }: Parts,
  attempts: readonly Attempt[],
  now: string,
): Promise<ReadonlyMap<string, Holder>> {
  const bearers = [...new Set(attempts.map(({ bearer }) => bearer))].filter(isWellFormed);
  const hashes = bearers.map(hashToken);
  const tokens = await tokenLookup.byHashes(hashes);
  const owners = await organizations.byIds([
    ...new Set(Array.from(tokens.values(), ({ organizationId }) => organizationId)),
  ]);
  const holders = new Map<string, Holder>();
  bearers.forEach((bearer, index) => {
    const token = tokens.get(hashes[index]!);
    const organization = token && owners.get(token.organizationId);
    if (!organization) return;
    const { tier, state } = organization;
    const principal: Principal = {
      kind: 'SERVER_TOKEN',
      organizationId: token.organizationId,
      subject: token._id,
      name: token.name,
      roles: [],
      groups: [],
      tier,
      limits: { ...tierOf(tier).limits },
      via: '',
    };
    holders.set(bearer, {
      token,
      principal,
      valid: state === 'active' && token.revokedAt === null && !isExpired(token, now),
    });
  });
  return holders;
}

function decide(
  { policies, denials }: Parts,
  { method, requestId }: Attempt,
  holder: Holder | undefined,
  time: string,
): Decision {
  if (!holder) return { denial: denialStatus('UNAUTHENTICATED') };
  const { principal, valid } = holder;
  const reason = valid ? refusalOf(policies.get(method), principal, tierOf(principal.tier)) : 'UNAUTHENTICATED';
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

const denialStatus = (reason: KnownReason) =>
  toStatus(
    new ServiceError(
      reason,
      undefined,
      reason === 'UNAUTHENTICATED' ? { headers: { 'WWW-Authenticate': 'Bearer' } } : {},
    ),
  );

/** The first use is written before the answer, so that a used token never says "never"; later ones wait for the flush. */
async function noteUses({ lastUsed, tokenLookup }: Parts, used: readonly Holder[], at: string): Promise<void> {
  for (const { token } of used) lastUsed.note({ tokenId: token._id, at });
  const first = used.filter(({ token }) => token.lastUsedAt === null).map(({ token }) => token._id);
  if (first.length > 0) await tokenLookup.markFirstUse(first, at);
}
