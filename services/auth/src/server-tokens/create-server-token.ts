import type { CreateServerTokenRequest, CreateServerTokenResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { requireWithinLimit } from 'platform/core/principal.ts';
import { audited } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireName } from '../organizations/rules.ts';
import { takeTokenPlace } from '../organizations/store.ts';
import { tierOf } from '../tiers.ts';
import { expectUnchanged } from '../users/store.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenReply } from './message.ts';
import { hashToken, hintOf, makeToken, requireExpiry, requireId } from './rules.ts';
import { isExpired, slotOfName, type ServerToken } from './store.ts';

type Parts = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens' | 'denials' | 'mutex'>;

/**
 * The value is in this reply and nowhere else. The batch expects the organization active, its tier, the number of its tokens and
 * the user's membership as they were read.
 * @throws ServiceError FORBIDDEN, INVALID_REQUEST, ALREADY_EXISTS with the id, TIER_LIMIT
 */
export function createServerToken(
  deps: Parts,
  request: CreateServerTokenRequest,
  context: CallContext,
): Promise<CreateServerTokenResponse> {
  const { clock, serverTokens } = deps;
  const round = async (): Promise<CreateServerTokenResponse> => {
    const { organization, membership } = await requireSecurityAdmin(deps, context);
    const nowMs = clock.now();
    const now = isoTime(nowMs);
    const name = requireName('/name', request.name);
    const expiresAt = request.expiresAt === undefined ? null : isoTime(requireExpiry(request.expiresAt, nowMs));
    const id = request.id === undefined ? newId() : requireId(request.id);

    if (request.id !== undefined && (await serverTokens.byId(organization._id, id)))
      throw new ServiceError('ALREADY_EXISTS', 'A server token of this id exists', { facts: { id } });
    const holder = await serverTokens.byName(organization._id, name);
    if (holder && !isExpired(holder, now))
      throw new ServiceError('ALREADY_EXISTS', 'A server token of this name exists', { facts: { id: holder._id } });
    const live = await serverTokens.countLive(organization._id, now);
    requireWithinLimit(
      { ...context.principal, limits: { ...tierOf(organization.tier).limits } },
      'server_tokens',
      live,
    );

    const value = makeToken();
    const token: ServerToken = {
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
    };
    const audit = audited(
      context,
      organization._id,
      'server_token.create',
      { type: 'server_token', id: token._id },
      now,
    );
    await serverTokens.insert(token, holder, [takeTokenPlace(organization), expectUnchanged(membership), audit]);
    return { serverToken: serverTokenReply(token), value };
  };
  return deps.mutex(context.principal.organizationId, () => retryOnConflict(context.signal, round));
}
