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
 * already is returned unchanged, unless its runs shall end now. A revoked token is not found by its name.
 * @throws ServiceError FORBIDDEN, NOT_FOUND, CONFLICT
 */
export function revokeServerToken(
  deps: Needs,
  { idOrName, cancelRuns = false }: RevokeServerTokenRequest,
  context: CallContext,
): Promise<RevokeServerTokenResponse> {
  const { clock, serverTokens } = deps;
  return retryOnConflict(context.signal, async () => {
    const { organization } = await requireSecurityAdmin(deps, context);
    requireText('idOrName', idOrName);
    const token =
      (await serverTokens.byId(organization._id, idOrName)) ?? (await serverTokens.byName(organization._id, idOrName));
    if (!token) throw new ServiceError('NOT_FOUND', 'Server token not found');
    const runsCancelled = cancelRuns || token.runsCancelled === true;
    if (token.revokedAt !== null && runsCancelled === (token.runsCancelled === true))
      return { serverToken: serverTokenMessage(token) };
    const now = isoTime(clock.now());
    const revoked = { revokedAt: token.revokedAt ?? now, ...(runsCancelled && { runsCancelled }) };
    await serverTokens.revoke(
      token,
      revoked,
      auditEntry(
        context,
        organization._id,
        'server_token.revoke',
        { type: 'server_token', id: token._id },
        now,
        changesOf({ name: token.name }, revoked),
      ),
    );
    return { serverToken: serverTokenMessage({ ...token, ...revoked }) };
  });
}
