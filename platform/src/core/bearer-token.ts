import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The first characters of every server token, and of every callback token; secret scanners look for them. */
export const SERVER_TOKEN = 'aks_';
export const CALLBACK_TOKEN = 'akc_';
export type TokenPrefix = typeof SERVER_TOKEN | typeof CALLBACK_TOKEN;

/** How many base62 digits follow the prefix: 43 of the secret, 6 of the checksum. */
const SECRET_DIGITS = 43;
const CHECKSUM_DIGITS = 6;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A text of the form of a token, anywhere in a longer text. */
export const TOKEN_FORM = new RegExp(`ak[cs]_[0-9A-Za-z]{${SECRET_DIGITS + CHECKSUM_DIGITS}}`);
const FORM = new RegExp(`^${TOKEN_FORM.source}$`);

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
}

const checksum = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_DIGITS);

/** A new token: its prefix, 256 random bits in 43 base62 digits, and the CRC-32 (IEEE) of all that in 6 digits. */
export function makeToken(prefix: TokenPrefix): string {
  const body = prefix + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_DIGITS);
  return body + checksum(body);
}

/** Whether `makeToken` can have made it: typing errors and noise are denied without a read of the store. */
export const isWellFormed = (prefix: TokenPrefix, token: string): boolean =>
  token.startsWith(prefix) &&
  FORM.test(token) &&
  checksum(token.slice(0, -CHECKSUM_DIGITS)) === token.slice(-CHECKSUM_DIGITS);

/** SHA-256 in hex, stored instead of the token. The secret has 256 bits, so no slow hash is needed. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');
