const REDACTED = '[redacted]';
/** A shorter secret is also part of texts that have nothing to do with it. */
const MIN_BYTES = 4;

/** What base64 text has of these bytes wherever they stand in it: without the characters that also hold other bytes. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const whole = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return [whole, whole.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** How a text may hold a secret: as it is, escaped for JSON, JSON pointers or URLs, in hexadecimal, and in base64. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  if (bytes.length < MIN_BYTES) return [];
  const hex = bytes.toString('hex');
  const escaped = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return [
    ...[secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)],
    secret.replaceAll('~', '~0').replaceAll('/', '~1'),
    new URLSearchParams([['', secret]]).toString().slice(1),
    ...[hex, hex.toUpperCase(), escaped, escaped.toUpperCase(), ...base64Forms(bytes)],
  ];
}

/**
 * Takes secrets out of texts that an agent gives, before anybody may read them. An agent that wants to give its secret
 * away can always do so in another form; this is for those that do so by mistake.
 */
export function makeRedact(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  return (text) => forms.reduce((left, form) => left.replaceAll(form, REDACTED), text);
}
