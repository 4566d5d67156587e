import type { RevokeGrantRequest, RevokeGrantResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import { auditEntry } from '../events.ts';
import type { Deps } from '../deps.ts';
import { grantMessage } from './message.ts';

/**
 * Every request with a JWT under the grant that starts after this has returned is denied. A grant that is revoked
 * already is returned unchanged.
 * @throws ServiceError INVALID_REQUEST, NOT_FOUND, CONFLICT
 */
export function revokeGrant(
  { clock, grants }: Pick<Deps, 'clock' | 'grants'>,
  request: RevokeGrantRequest,
  context: CallContext,
): Promise<RevokeGrantResponse> {
  const organizationId = organizationOfCall(context);
  const id = requireText('id', request.id).toLowerCase();
  return retryOnConflict(context.signal, async () => {
    const grant = await grants.byId(organizationId, id);
    if (!grant) throw new ServiceError('NOT_FOUND', 'Grant not found');
    if (grant.revokedAt !== null) return { grant: grantMessage(grant) };
    const revokedAt = isoTime(clock.now());
    const changes = changesOf({ email: grant.email }, { revokedAt });
    const entry = auditEntry(context, organizationId, 'grant.revoke', { type: 'grant', id }, revokedAt, changes);
    await grants.revoke(grant, revokedAt, entry);
    return { grant: grantMessage({ ...grant, revokedAt }) };
  });
}
