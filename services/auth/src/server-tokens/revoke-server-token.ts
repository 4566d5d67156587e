import type { RevokeServerTokenRequest, RevokeServerTokenResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenMessage } from './message.ts';

type Needs = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens'>;

/**
 * Every request with the token that starts after this has returned is denied. Idempotent by id: a token that is revoked
 * already is returned unchanged. A revoked token is not found by its name.
 * @throws ServiceError FORBIDDEN, NOT_FOUND, CONFLICT
 */
export function revokeServerToken(
  deps: Needs,
  { idOrName }: RevokeServerTokenRequest,
  context: CallContext,
): Promise<RevokeServerTokenResponse> {
  const { clock, serverTokens } = deps;
  return retryOnConflict(context.signal, async () => {
    const { organization } = await requireSecurityAdmin(deps, context);
    requireText('idOrName', idOrName);
    const token =
      (await serverTokens.byId(organization._id, idOrName)) ?? (await serverTokens.byName(organization._id, idOrName));
    if (!token) throw new ServiceError('NOT_FOUND', 'Server token not found');
    if (token.revokedAt !== null) return { serverToken: serverTokenMessage(token) };
    const revokedAt = isoTime(clock.now());
    await serverTokens.revoke(
      token,
      revokedAt,
      auditEntry(
        context,
        organization._id,
        'server_token.revoke',
        { type: 'server_token', id: token._id },
        revokedAt,
        changesOf({ name: token.name }, { revokedAt }),
      ),
    );
    return { serverToken: serverTokenMessage({ ...token, revokedAt }) };
  });
}
