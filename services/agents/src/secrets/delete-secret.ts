import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { DeleteSecretRequest, DeleteSecretResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { secretAuditEntry } from '../events.ts';

/**
 * Deletes a secret with the value before it. Runs of agents that name it fail from now on.
 * @throws ServiceError NOT_FOUND, CONFLICT
 */
export async function deleteSecret(
  { secrets, clock }: Pick<Deps, 'secrets' | 'clock'>,
  { name }: DeleteSecretRequest,
  context: CallContext,
): Promise<DeleteSecretResponse> {
  return retryOnConflict(context.signal, async () => {
    const secret = await secrets.byName(organizationOfCall(context), name);
    if (!secret) throw new ServiceError('NOT_FOUND', 'Secret not found');
    await secrets.delete(secret, secretAuditEntry(context, 'secret.delete', name, isoTime(clock.now())));
    return {};
  });
}
