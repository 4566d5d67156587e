import { invalid } from 'platform/core/errors.ts';

const CONTROL = /\p{Cc}/u;

/** @throws ServiceError INVALID_REQUEST unless the key has 1 to `maxLength` characters, none of them a control character */
export function checkKey(key: string | undefined, maxLength: number): string {
  if (key === undefined) throw invalid('/key', 'key is required');
  if (key === '' || Array.from(key).length > maxLength || CONTROL.test(key))
    throw invalid('/key', `key must be 1 to ${maxLength} characters without control characters`);
  return key;
}

/** What names an object and its type; of a request, what it says about them. */
export interface Identity {
  id?: string | undefined;
  typeId?: string | undefined;
  type?: string | undefined;
  key?: string | undefined;
}

/** @throws ServiceError INVALID_REQUEST naming the first member that differs from the stored one */
export function requireUnchanged(given: Identity, stored: Required<Identity>): void {
  const differs = (name: 'id' | 'typeId' | 'type'): boolean =>
    given[name] !== undefined && given[name].toLowerCase() !== stored[name]?.toLowerCase();
  for (const name of ['id', 'typeId', 'type'] as const)
    if (differs(name)) throw invalid(`/${name}`, `${name} of a memory object cannot change`);
  if (given.key !== undefined && given.key !== stored.key)
    throw invalid('/key', 'key of a memory object cannot change');
}
