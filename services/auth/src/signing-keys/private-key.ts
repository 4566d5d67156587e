import { ServiceError, unavailable } from 'platform/core/errors.ts';
import type { Sealing } from 'platform/core/sealing.ts';
import { purposeOf } from './rules.ts';

/**
 * The private key of a signing key: JWK as JSON text.
 * @throws ServiceError UNAVAILABLE when it was sealed under a master key that is not here, or was changed
 */
export function openPrivateKey(
  sealing: Pick<Sealing, 'open'>,
  { _id, sealed }: { readonly _id: string; readonly sealed: string },
): string {
  try {
    return sealing.open(purposeOf(_id), sealed);
  } catch (cause) {
    const fault = cause instanceof ServiceError ? 'sealed under another master key' : 'changed in the store';
    throw unavailable(`The key that signs JWTs was ${fault}`, cause);
  }
}
