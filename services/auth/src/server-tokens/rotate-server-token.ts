import type { RotateServerTokenRequest, RotateServerTokenResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime, requireOverlap } from 'platform/core/clock.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { requireWithinLimit } from 'platform/core/principal.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { raiseTokenEpoch } from '../organizations/store.ts';
import { tierOf } from '../tiers.ts';
import { expectUnchanged } from '../users/store.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenMessage } from './message.ts';
import { hashToken, makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { hintOf, requireId } from './rules.ts';
import { isExpired, slotOfName, type ServerTokenRecord } from './store.ts';

type Needs = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens' | 'mutex'>;

/**
 * The new token keeps the name and the expiry. The old one never lives longer than it would have. An overlap may exceed
 * the tier's limit by one token, so that an organization at its limit can rotate; without an overlap none is added.
 * @throws ServiceError FORBIDDEN, INVALID_REQUEST, NOT_FOUND, ALREADY_EXISTS with the id, TIER_LIMIT, CONFLICT
 */
export function rotateServerToken(
  deps: Needs,
  request: RotateServerTokenRequest,
  context: CallContext,
): Promise<RotateServerTokenResponse> {
  const { clock, serverTokens } = deps;
  const tryOnce = async (): Promise<RotateServerTokenResponse> => {
    const { organization, membership } = await requireSecurityAdmin(deps, context);
    const { idOrName } = request;
    requireText('idOrName', idOrName);
    const overlapMs = requireOverlap(request.overlapSeconds);
    const id = request.id === undefined ? newId() : requireId(request.id);
    const nowMs = clock.now();
    const now = isoTime(nowMs);

    if (request.id !== undefined && (await serverTokens.byId(organization._id, id)))
      throw new ServiceError('ALREADY_EXISTS', 'A server token of this id exists', { facts: { id } });
    const previous =
      (await serverTokens.byId(organization._id, idOrName)) ?? (await serverTokens.byName(organization._id, idOrName));
    const hasItsName = previous?.nameSlot === slotOfName(previous?.name ?? '');
    if (!previous || !hasItsName || isExpired(previous, now))
      throw new ServiceError('NOT_FOUND', 'Live server token not found');
    if (overlapMs > 0) {
      const othersLive = (await serverTokens.countLive(organization._id, now)) - 1;
      const limits = { ...tierOf(organization.tier).limits };
      requireWithinLimit({ ...context.principal, limits }, 'server_tokens', othersLive);
    }

    const value = makeToken(SERVER_TOKEN);
    const token: ServerTokenRecord = {
      ...previous,
      _id: id,
      hash: hashToken(value),
      hint: hintOf(value),
      createdAt: now,
      createdBy: membership.email,
      lastUsedAt: null,
    };
    const overlapEnd = isoTime(nowMs + overlapMs);
    const endsEarlier = previous.expiresAt !== null && previous.expiresAt < overlapEnd;
    const end =
      overlapMs === 0
        ? { expiresAt: previous.expiresAt, revokedAt: now }
        : { expiresAt: endsEarlier ? previous.expiresAt : overlapEnd, revokedAt: null };
    const { name, expiresAt, scopes, addressRanges } = token;
    await serverTokens.replace(previous, end, token, [
      raiseTokenEpoch(organization),
      expectUnchanged(membership),
      auditEntry(
        context,
        organization._id,
        'server_token.rotate',
        { type: 'server_token', id: previous._id },
        now,
        changesOf({ name, expiresAt: previous.expiresAt, revokedAt: null }, end),
      ),
      auditEntry(
        context,
        organization._id,
        'server_token.create',
        { type: 'server_token', id },
        now,
        changesOf({}, { name, expiresAt, scopes, addressRanges }),
      ),
    ]);
    return {
      serverToken: serverTokenMessage(token),
      value,
      previous: serverTokenMessage({ ...previous, ...end }),
    };
  };
  return deps.mutex(context.principal.organizationId, 'server tokens', () => retryOnConflict(context.signal, tryOnce));
}
