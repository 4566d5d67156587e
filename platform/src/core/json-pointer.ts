/** A name as it is spelled in a JSON pointer (RFC 6901): "a/b" becomes "a~1b". */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** A pointer to a member at any depth; not "", which is the whole value. */
export const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** The names in a pointer, in their order: "/a~1b/0" gives "a/b" and "0". */
export const segmentsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));

/** The value at a pointer; undefined where there is none. Elements of arrays are found by their index. */
export const valueAt = (value: unknown, pointer: string): unknown =>
  segmentsOf(pointer).reduce(
    (at: unknown, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string, unknown>)[name]
        : undefined,
    value,
  );
