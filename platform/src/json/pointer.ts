import { escapePointer } from '../core/json-pointer.ts';

const MAX_NAME = 100;

/**
 * One step of a JSON pointer (RFC 6901): "a/b" becomes "/a~1b". A name of more than 100 characters is cut to 99 and
 * "…", so that a reply does not echo a long name.
 */
export function pointerTo(name: string | number): string {
  const text = String(name);
  const short = text.length <= MAX_NAME ? text : `${text.slice(0, MAX_NAME - 1).toWellFormed()}…`;
  return `/${escapePointer(short)}`;
}
