import { invalid } from 'platform/core/errors.ts';

/** @throws ServiceError NOT_SUPPORTED on a conditional request: to ignore the condition would break the client's trust in it */
export function refuseIfMatch({ ifMatch }: { ifMatch?: string | undefined }): void {
  if (ifMatch !== undefined) throw invalid('/If-Match', 'If-Match is not supported yet', 'NOT_SUPPORTED');
}

/** @throws ServiceError INVALID_REQUEST when a PUT or PATCH names no member */
export function requireMembers({ updateMask }: { updateMask: readonly string[] | undefined }): readonly string[] {
  if (updateMask === undefined || updateMask.length === 0) throw invalid('', 'The body names nothing to change');
  return updateMask;
}
