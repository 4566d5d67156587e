import { invalid } from 'platform/core/errors.ts';

/** @throws ServiceError INVALID_REQUEST unless 1 to 1,000, or 0 for the default of 100 */
export function requirePageSize(pageSize: number): number {
  if (pageSize < 0 || pageSize > 1_000) throw invalid('/pageSize', 'must be from 1 to 1,000');
  return pageSize || 100;
}
