import { createHmac } from 'node:crypto';

export const KEY_PREFIX = 'whsec_';

/**
 * The key of a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. Undefined for another text. Any
 * padding is taken, because secrets that an earlier release has stored still sign.
 */
export function signingKeyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(KEY_PREFIX)) return undefined;
  const text = secret.slice(KEY_PREFIX.length);
  const key = Buffer.from(text, 'base64');
  return unpadded(key.toString('base64')) === unpadded(text) && key.length >= 24 && key.length <= 64 ? key : undefined;
}
const unpadded = (base64: string): string => base64.replace(/=+$/, '');

/**
 * Why a secret cannot sign the calls of an agent that is applied now, as a predicate. Its padding is that of RFC 4648:
 * receivers in Python, Go and Rust read no other.
 */
export function faultOfSigningSecret(secret: string): string | undefined {
  const key = signingKeyOf(secret);
  if (key === undefined) return `must be ${KEY_PREFIX} and 24 to 64 bytes in base64`;
  return secret === KEY_PREFIX + key.toString('base64')
    ? undefined
    : `must be ${KEY_PREFIX} and base64 that is padded with = to a multiple of four characters`;
}

/**
 * The headers that sign a request (Standard Webhooks 1.0): a signature by each key, separated by spaces, so that the
 * receiver may know any one of them.
 * @param timestamp in seconds since 1970
 */
export function signatureHeaders(
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
  keys: readonly Buffer[],
): Record<string, string> {
  const signed = `${id}.${timestamp}.${body}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' '),
  };
}
