import { invalid } from 'platform/core/errors.ts';
import type { Config } from './config.ts';

/**
 * What a page skips and how many items it holds.
 * @throws ServiceError INVALID_REQUEST naming the query parameter
 */
export function pageOf(
  request: { page?: number | undefined; pageSize?: number | undefined },
  config: Config,
): { skip: number; limit: number } {
  const { page = 1, pageSize = config.MEMORY_PAGE_SIZE } = request;
  if (page < 1) throw invalid('/page', 'page must be at least 1');
  if (pageSize < 1 || pageSize > config.MEMORY_PAGE_SIZE_MAX)
    throw invalid('/pageSize', `pageSize must be from 1 to ${config.MEMORY_PAGE_SIZE_MAX}`);
  const skip = (page - 1) * pageSize;
  if (skip > config.MEMORY_OFFSET_MAX)
    throw invalid('/page', `page is too far: the pages before it may hold at most ${config.MEMORY_OFFSET_MAX} items`);
  return { skip, limit: pageSize };
}
