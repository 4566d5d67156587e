import { invalid } from 'platform/core/errors.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { Config } from './config.ts';

export interface JsonObject {
  /** The JSON text as the request carries it; this is what is stored. */
  text: string;
  value: Record<string, unknown>;
}

/**
 * Reads a member whose value is a JSON object, sent as text.
 * @param name of the member, for the error
 * @throws ServiceError INVALID_REQUEST when the member is missing, larger than `maxBytes`, or not a JSON object
 */
export function readJsonObject(name: string, text: string | undefined, maxBytes: number): JsonObject {
  if (text === undefined) throw invalid(`/${name}`, `${name} is required`);
  if (Buffer.byteLength(text) > maxBytes) throw invalid(`/${name}`, `${name} is larger than ${maxBytes} bytes`);
  const value = valueOf(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`/${name}`, `${name} must be a JSON object`);
  return { text, value: value as Record<string, unknown> };
}

/** Undefined when the text is not JSON. */
function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * The names of the members that a PUT or PATCH contains.
 * @throws ServiceError INVALID_REQUEST when there are none
 */
export function requireUpdateMask({ updateMask }: { updateMask: readonly string[] | undefined }): readonly string[] {
  if (updateMask === undefined || updateMask.length === 0) throw invalid('', 'The body names nothing to change');
  return updateMask;
}

/**
 * A client that sends If-Match relies on the condition being checked, so the header is rejected rather than ignored.
 * @throws ServiceError NOT_SUPPORTED
 */
export function rejectIfMatch({ ifMatch }: { ifMatch?: string | undefined }): void {
  if (ifMatch !== undefined) throw invalid('/If-Match', 'If-Match is not supported yet', 'NOT_SUPPORTED');
}

/**
 * Turns page (from 1) and pageSize into the number of items to skip and to return.
 * @throws ServiceError INVALID_REQUEST naming the query parameter
 */
export function pageOf(
  { page = 1, pageSize }: { page?: number | undefined; pageSize?: number | undefined },
  config: Config,
): { skip: number; limit: number } {
  if (page < 1) throw invalid('/page', 'page must be at least 1');
  const limit = requirePageSize(pageSize, { default: config.MEMORY_PAGE_SIZE, max: config.MEMORY_PAGE_SIZE_MAX });
  const skip = (page - 1) * limit;
  if (skip > config.MEMORY_OFFSET_MAX)
    throw invalid('/page', `page is too far: the pages before it may hold at most ${config.MEMORY_OFFSET_MAX} items`);
  return { skip, limit };
}
