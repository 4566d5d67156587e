import { invalid } from 'platform/core/errors.ts';

const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;

/** @throws ServiceError INVALID_REQUEST at `path` unless the name is 1 to 100 printable characters without spaces at its ends */
export function requireName(path: string, name: string): string {
  if (!PRINTABLE.test(name) || name.trim() !== name)
    throw invalid(path, 'must be 1 to 100 printable characters without spaces at its ends');
  return name;
}

/** Names that differ only in case or composition are one name. */
export const foldName = (name: string): string => name.normalize('NFC').toLowerCase();
