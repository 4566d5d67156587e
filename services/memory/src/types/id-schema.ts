import type { IdSchema } from 'proto/memory/v1/memory.ts';
import { invalid, type Violation } from 'platform/core/errors.ts';
import { POINTER, valueAt } from 'platform/core/json-pointer.ts';

const MAX_PROPERTIES = 16;
const MAX_SEPARATOR = 16;
const MAX_POINTER = 256;
const CONTROL = /\p{Cc}/u;

/**
 * An idSchema as it is stored: with its separator.
 * @throws ServiceError INVALID_REQUEST naming the wrong member
 */
export function checkIdSchema({ properties, separator = ':' }: IdSchema): Required<IdSchema> {
  if (properties.length === 0 || properties.length > MAX_PROPERTIES)
    throw invalid('/idSchema/properties', `properties must have 1 to ${MAX_PROPERTIES} elements`);
  requirePointers(properties, '/idSchema/properties');
  if (Array.from(separator).length > MAX_SEPARATOR || CONTROL.test(separator))
    throw invalid(
      '/idSchema/separator',
      `separator must be at most ${MAX_SEPARATOR} characters without control characters`,
    );
  return { properties, separator };
}

/**
 * @param member that holds each pointer, where `path` is a list of objects
 * @throws ServiceError INVALID_REQUEST unless each is a JSON pointer into the content, and none is given twice
 */
export function requirePointers(pointers: readonly string[], path: string, member = ''): void {
  pointers.forEach((pointer, index) => {
    if (!POINTER.test(pointer) || pointer.length > MAX_POINTER)
      throw invalid(
        `${path}/${index}${member}`,
        `a path must be a JSON pointer such as "/name", of at most ${MAX_POINTER} characters`,
      );
    if (pointers.indexOf(pointer) !== index)
      throw invalid(`${path}/${index}${member}`, 'a path must not be given twice');
  });
}

/**
 * Between several values nothing would tell them apart. An idSchema that a release before stored may be so.
 * @throws ServiceError INVALID_REQUEST
 */
export function requireSeparator({ properties, separator }: IdSchema): void {
  if (properties.length > 1 && separator === '')
    throw invalid('/idSchema/separator', 'separator must not be empty where the key is made of several properties');
}

/**
 * The key that the content of an object has by the idSchema. Other values may give the same key (`1` and `"1"`, or some
 * that contain the separator); so whoever finds an object by such a key asks `hasSameKeyValues` (ADR 57).
 */
export function deriveKey(
  { properties, separator = ':' }: IdSchema,
  content: Record<string, unknown>,
): { key: string } | { violations: Violation[] } {
  const values = properties.map((pointer) => valueAt(content, pointer));
  const violations = properties
    .filter((_, index) => !['string', 'number', 'boolean'].includes(typeof values[index]))
    .map((pointer) => ({
      path: `/content${pointer}`,
      message: 'must be a string, a number or a boolean: the idSchema of the type makes the key of it',
    }));
  return violations.length > 0 ? { violations } : { key: values.map(String).join(separator) };
}

/** Whether two contents have the same values at the properties of which the key is made. */
export const hasSameKeyValues = (
  { properties }: IdSchema,
  one: Record<string, unknown>,
  other: Record<string, unknown>,
): boolean => properties.every((pointer) => valueAt(one, pointer) === valueAt(other, pointer));
