import type { CreateServerTokenRequest, CreateServerTokenResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { requireWithinLimit } from 'platform/core/principal.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireName } from '../organizations/rules.ts';
import { raiseTokenEpoch } from '../organizations/store.ts';
import { tierOf } from '../tiers.ts';
import { expectUnchanged } from '../users/store.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenMessage } from './message.ts';
import { requireAddressRanges } from 'platform/core/address-ranges.ts';
import { hashToken, makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { hintOf, requireExpiry, requireId } from './rules.ts';
import { requireScopes } from './scopes.ts';
import { isExpired, slotOfName, type ServerTokenRecord } from './store.ts';

type Needs = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens' | 'mutex'>;

/**
 * The value of the token is in this response and nowhere else. The batch expects what was checked: the organization is
 * active, its tier, its tokens and the user's membership are unchanged. If not, everything is read and checked again.
 * @throws ServiceError FORBIDDEN, INVALID_REQUEST, ALREADY_EXISTS with the id of the token, TIER_LIMIT, CONFLICT
 */
export function createServerToken(
  deps: Needs,
  request: CreateServerTokenRequest,
  context: CallContext,
): Promise<CreateServerTokenResponse> {
  const { clock, serverTokens } = deps;
  const tryOnce = async (): Promise<CreateServerTokenResponse> => {
    const { organization, membership } = await requireSecurityAdmin(deps, context);
    const nowMs = clock.now();
    const now = isoTime(nowMs);
    const name = requireName('/name', request.name);
    const expiresAt = request.expiresAt === undefined ? null : isoTime(requireExpiry(request.expiresAt, nowMs));
    const scopes = requireScopes(request.restrictions?.scopes ?? []);
    const addressRanges = requireAddressRanges(request.restrictions?.addressRanges ?? []);
    const id = request.id === undefined ? newId() : requireId(request.id);

    if (request.id !== undefined && (await serverTokens.byId(organization._id, id)))
      throw new ServiceError('ALREADY_EXISTS', 'A server token of this id exists', { facts: { id } });
    const sameName = await serverTokens.byName(organization._id, name);
    if (sameName && !isExpired(sameName, now))
      throw new ServiceError('ALREADY_EXISTS', 'A server token of this name exists', { facts: { id: sameName._id } });
    const liveTokens = await serverTokens.countLive(organization._id, now);
    requireWithinLimit(
      { ...context.principal, limits: { ...tierOf(organization.tier).limits } },
      'server_tokens',
      liveTokens,
    );

    const value = makeToken(SERVER_TOKEN);
    const token: ServerTokenRecord = {
      _id: id,
      organizationId: organization._id,
      name,
      nameSlot: slotOfName(name),
      hash: hashToken(value),
      hint: hintOf(value),
      createdAt: now,
      createdBy: membership.email,
      lastUsedAt: null,
      expiresAt,
      revokedAt: null,
      ...(scopes && { scopes }),
      ...(addressRanges && { addressRanges }),
    };
    await serverTokens.create(token, sameName, [
      raiseTokenEpoch(organization),
      expectUnchanged(membership),
      auditEntry(
        context,
        organization._id,
        'server_token.create',
        { type: 'server_token', id },
        now,
        changesOf({}, { name, expiresAt, scopes, addressRanges }),
      ),
    ]);
    return { serverToken: serverTokenMessage(token), value };
  };
  return deps.mutex(context.principal.organizationId, 'server tokens', () => retryOnConflict(context.signal, tryOnce));
}
