import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import { CHECKSUM_DIGITS, SECRET_DIGITS, TOKEN_FORM, TOKEN_PREFIX } from 'platform/core/server-token.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${TOKEN_FORM.source}$`);

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
}

const checksum = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_DIGITS);

/** A new token: `aks_`, 256 random bits in 43 base62 digits, and the CRC-32 (IEEE) of all that in 6 base62 digits. */
export function makeToken(): string {
  const body = TOKEN_PREFIX + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_DIGITS);
  return body + checksum(body);
}

/** Whether `makeToken` can have made it: typing errors and noise are denied without a read of the store. */
export const isWellFormed = (token: string): boolean =>
  FORM.test(token) && checksum(token.slice(0, -CHECKSUM_DIGITS)) === token.slice(-CHECKSUM_DIGITS);

/** SHA-256 in hex, stored instead of the token. The secret has 256 bits, so no slow hash is needed. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** The first 8 characters: enough to recognize a token in a list, too few to use it. */
export const hintOf = (token: string): string => token.slice(0, 8);

/** @throws ServiceError INVALID_REQUEST */
export function requireId(id: string): string {
  if (!isUuid(id) || id !== id.toLowerCase()) throw invalid('/id', 'must be a UUID in lower case');
  return id;
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since 1970. @throws ServiceError INVALID_REQUEST unless it is a future ISO-8601 time with a zone */
export function requireExpiry(expiresAt: string, nowMs: number): number {
  const ms = ISO_TIME.test(expiresAt) ? Date.parse(expiresAt) : Number.NaN;
  if (!(ms > nowMs))
    throw invalid('/expiresAt', 'must be an ISO-8601 time in the future, for example 2030-01-31T12:00:00Z');
  return ms;
}
