import type { RevokeServerTokenRequest, RevokeServerTokenResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { audited } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenReply } from './message.ts';

type Parts = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens' | 'denials'>;

/**
 * Once this has answered, every request that starts later is refused. A token revoked before, by its id, answers as it is.
 * @throws ServiceError FORBIDDEN, NOT_FOUND
 */
export function revokeServerToken(
  deps: Parts,
  { idOrName }: RevokeServerTokenRequest,
  context: CallContext,
): Promise<RevokeServerTokenResponse> {
  const { clock, serverTokens } = deps;
  return retryOnConflict(context.signal, async () => {
    const { organization } = await requireSecurityAdmin(deps, context);
    const token =
      (await serverTokens.byId(organization._id, idOrName)) ?? (await serverTokens.byName(organization._id, idOrName));
    if (!token) throw new ServiceError('NOT_FOUND', 'Server token not found');
    if (token.revokedAt !== null) return { serverToken: serverTokenReply(token) };
    const revokedAt = isoTime(clock.now());
    await serverTokens.revoke(
      token,
      revokedAt,
      audited(context, organization._id, 'server_token.revoke', { type: 'server_token', id: token._id }, revokedAt),
    );
    return { serverToken: serverTokenReply({ ...token, revokedAt }) };
  });
}
