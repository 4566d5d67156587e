import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';

/** The first 8 characters: enough to recognize a token in a list, too few to use it. */
export const hintOf = (token: string): string => token.slice(0, 8);

/** @throws ServiceError INVALID_REQUEST */
export function requireId(id: string): string {
  if (!isUuid(id) || id !== id.toLowerCase()) throw invalid('/id', 'must be a UUID in lower case');
  return id;
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since 1970. @throws ServiceError INVALID_REQUEST unless it is a future ISO-8601 time with a zone */
export function requireExpiry(expiresAt: string, nowMs: number): number {
  const ms = ISO_TIME.test(expiresAt) ? Date.parse(expiresAt) : Number.NaN;
  if (!(ms > nowMs))
    throw invalid('/expiresAt', 'must be an ISO-8601 time in the future, for example 2030-01-31T12:00:00Z');
  return ms;
}
