import { invalid } from './errors.ts';

/**
 * The number of items on a page; the default when it is undefined.
 * @throws ServiceError INVALID_REQUEST at /pageSize
 */
export function requirePageSize(pageSize: number | undefined, bounds: { default: number; max: number }): number {
  if (pageSize === undefined) return bounds.default;
  if (Number.isInteger(pageSize) && pageSize >= 1 && pageSize <= bounds.max) return pageSize;
  throw invalid('/pageSize', `pageSize must be an integer from 1 to ${bounds.max}`);
}
