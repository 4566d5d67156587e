import { withoutCoding } from 'platform/core/entity-tag.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { Config } from './config.ts';

export interface JsonObject {
  /** The JSON text as the request carries it; this is what is stored. */
  text: string;
  value: Record<string, unknown>;
}

/**
 * Reads a member whose value is a JSON object, sent as text, which may take long: call it through the fair scheduler.
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

const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*$/;

/**
 * Checks the condition of a write against the ETag of what is stored, by strong comparison (RFC 9110, 13.1.1). The
 * client may have read it in any content coding.
 * @throws ServiceError PRECONDITION_FAILED; INVALID_REQUEST when If-Match is no list of ETags
 */
export function requireMatch({ ifMatch }: { ifMatch?: string | undefined }, etag: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  if (!TAG_LIST.test(ifMatch.trim())) throw invalid('/If-Match', 'If-Match must be ETags in double quotes, or *');
  const tags = ifMatch.match(/(?:W\/)?"[^"]*"/g) ?? [];
  if (!tags.some((tag) => withoutCoding(tag) === etag)) throw new ServiceError('PRECONDITION_FAILED');
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
    throw invalid(
      '/page',
      `page is too far: at most ${config.MEMORY_OFFSET_MAX} items may be before it; follow the cursor in the Link header`,
    );
  return { skip, limit };
}
