import { invalid } from 'platform/core/errors.ts';

const CONTROL = /\p{Cc}/u;
/** What a stored object takes beside its content and key: ids, times and the entries in its indexes, rounded up. */
const OBJECT_BYTES = 1_024;

/** The stored bytes of an object, as the tier's limit `memory_bytes` counts them. */
export const objectBytes = ({ content, key }: { content: string; key: string }): number =>
  OBJECT_BYTES + Buffer.byteLength(content) + Buffer.byteLength(key);

/** @throws ServiceError INVALID_REQUEST unless the key has 1 to `maxLength` characters and no control character */
export function requireKey(key: string | undefined, maxLength: number): string {
  if (key === undefined) throw invalid('/key', 'key is required');
  if (key === '' || Array.from(key).length > maxLength || CONTROL.test(key))
    throw invalid('/key', `key must be 1 to ${maxLength} characters without control characters`);
  return key;
}

/** The members that identify an object and its type. They never change, except that a type may be renamed. */
export interface Identity {
  id?: string | undefined;
  typeId?: string | undefined;
  type?: string | undefined;
  key?: string | undefined;
}

/**
 * A client may send back the identity as it got it, ids and type name in any case.
 * @param given the members in the request
 * @throws ServiceError INVALID_REQUEST naming the first member that differs from the stored one
 */
export function requireSameIdentity(given: Identity, stored: Required<Identity>): void {
  const differs = (name: 'id' | 'typeId' | 'type'): boolean =>
    given[name] !== undefined && given[name].toLowerCase() !== stored[name]?.toLowerCase();
  for (const name of ['id', 'typeId', 'type'] as const)
    if (differs(name)) throw invalid(`/${name}`, `${name} of a memory object cannot change`);
  if (given.key !== undefined && given.key !== stored.key)
    throw invalid('/key', 'key of a memory object cannot change');
}
