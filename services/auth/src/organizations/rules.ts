import { invalid } from 'platform/core/errors.ts';

/** For every list of this service. A request says 0 for "not given", which takes the default. */
export const PAGE_SIZES = { default: 100, max: 1_000 };

const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;

/**
 * Checks the name of an organization, user, group or server token. `path` is its JSON pointer in the request.
 * @throws ServiceError INVALID_REQUEST at `path` unless it is 1 to 100 printable characters without spaces at its ends
 */
export function requireName(path: string, name: string): string {
  if (!PRINTABLE.test(name) || name.trim() !== name)
    throw invalid(path, 'must be 1 to 100 printable characters without spaces at its ends');
  return name;
}

/** The form in which names are compared: differences of case and of Unicode composition do not count. */
export const foldName = (name: string): string => name.normalize('NFC').toLowerCase();
