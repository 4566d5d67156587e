import { createHmac } from 'node:crypto';

export const KEY_PREFIX = 'whsec_';

/** The key of a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. Undefined for another text. */
export function signingKeyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(KEY_PREFIX)) return undefined;
  const text = secret.slice(KEY_PREFIX.length);
  const key = Buffer.from(text, 'base64');
  return key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '') && key.length >= 24 && key.length <= 64
    ? key
    : undefined;
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
