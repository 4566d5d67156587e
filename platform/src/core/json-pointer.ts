/** A name as it is spelled in a JSON pointer (RFC 6901): "a/b" becomes "a~1b". */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
