import { isoTime, requireOverlap } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { SetSecretRequest, SetSecretResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { secretAuditEntry } from '../events.ts';
import { faultOfSigningSecret, KEY_PREFIX } from '../runtimes/http/signature.ts';
import { secretMessage } from './message.ts';
import { checkSecret } from './rules.ts';

/**
 * Stores a secret, sealed. Runs use it from now on, and for the overlap the value before, too.
 * @throws ServiceError INVALID_REQUEST, CONFLICT
 */
export async function setSecret(
  { secrets, clock }: Pick<Deps, 'secrets' | 'clock'>,
  request: SetSecretRequest,
  context: CallContext,
): Promise<SetSecretResponse> {
  checkSecret(request);
  const { name, value } = request;
  // No other secret looks like one that signs, and an agent that has it is not applied anew when it is rotated.
  const fault = value.startsWith(KEY_PREFIX) ? faultOfSigningSecret(value) : undefined;
  if (fault !== undefined) throw invalid('/value', `A secret that begins with ${KEY_PREFIX} ${fault}`);
  const overlapMs = requireOverlap(request.overlapSeconds);
  const organizationId = organizationOfCall(context);
  return retryOnConflict(context.signal, async () => {
    const existing = await secrets.byName(organizationId, name);
    const now = isoTime(clock.now());
    const previousUntil = overlapMs > 0 ? isoTime(clock.now() + overlapMs) : undefined;
    const audit = secretAuditEntry(context, 'secret.set', name, now);
    const secret = await secrets.set(organizationId, { existing, name, value, previousUntil, now }, audit);
    return { secret: secretMessage(secret, now) };
  });
}
