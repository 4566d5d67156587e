import type { RotateSigningKeyRequest, RotateSigningKeyResponse } from 'proto/auth/v1/auth.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import { addKey } from './add-key.ts';
import { PUBLISHED_BEFORE_MS } from './rules.ts';

/**
 * It concerns all organizations, so no audit trail has it; the log has.
 * @throws ServiceError CONFLICT when another process makes the next key at the same time
 */
export async function rotateSigningKey(
  deps: Pick<Deps, 'signingKeys' | 'sealing' | 'clock' | 'log'>,
  { withdraw }: RotateSigningKeyRequest,
  { principal, requestId }: CallContext,
): Promise<RotateSigningKeyResponse> {
  const key = await addKey(deps, await deps.signingKeys.all(), {
    signsAfterMs: withdraw ? 0 : PUBLISHED_BEFORE_MS,
    withdraw,
  });
  if (!key) throw new ServiceError('CONFLICT', 'Another signing key was made at the same time');
  const facts = { requestId, operator: principal.subject, kid: key._id, withdraw };
  deps.log.info(facts, 'the signing key of JWTs was rotated');
  return { signingKey: { id: key._id, createdAt: key.createdAt, signsFrom: key.signsFrom } };
}
