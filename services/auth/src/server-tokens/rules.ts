import { requireTime } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';

/** The first 8 characters: enough to recognize a token in a list, too few to use it. */
export const hintOf = (token: string): string => token.slice(0, 8);

/** @throws ServiceError INVALID_REQUEST */
export function requireId(id: string): string {
  if (!isUuid(id) || id !== id.toLowerCase()) throw invalid('/id', 'must be a UUID in lower case');
  return id;
}

/** Milliseconds since 1970. @throws ServiceError INVALID_REQUEST unless it is a future ISO-8601 time with a zone */
export function requireExpiry(expiresAt: string, nowMs: number): number {
  const ms = requireTime('/expiresAt', expiresAt);
  if (ms <= nowMs) throw invalid('/expiresAt', 'must be in the future');
  return ms;
}
