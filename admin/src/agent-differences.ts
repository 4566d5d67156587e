import { escapePointer } from 'platform/core/json-pointer.ts';

export interface Difference {
  /** JSON pointer of the member. */
  path: string;
  change: 'added' | 'removed' | 'changed';
  /** JSON text; absent where there is no value. */
  before?: string;
  after?: string;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A schema may have a property that is named like one of every object: constructor. */
const own = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** The members in which two definitions differ, whatever their order and white space. */
export function differencesOf(before: unknown, after: unknown, path = ''): Difference[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) =>
      differencesOf(own(before, name), own(after, name), `${path}/${escapePointer(name)}`),
    );
  }
  const texts = [before, after].map((value) => (value === undefined ? undefined : JSON.stringify(value)));
  const [old, present] = texts as [string | undefined, string | undefined];
  if (isEqual(before, after)) return [];
  if (old === undefined) return [{ path, change: 'added', after: present! }];
  if (present === undefined) return [{ path, change: 'removed', before: old }];
  return [{ path, change: 'changed', before: old, after: present }];
}

function isEqual(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, index) => isEqual(value, other[index]));
  return isObject(one) && isObject(other) ? differencesOf(one, other).length === 0 : one === other;
}
