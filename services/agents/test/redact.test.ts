import fc from 'fast-check';
import { makeRedact } from '../src/secrets/redact.ts';

const secretText = fc.string({ unit: 'grapheme', minLength: 8, maxLength: 40 }).filter((text) => text.isWellFormed());
const ENCODINGS: Record<string, (text: string) => string> = {
  plain: (text) => text,
  JSON: (text) => JSON.stringify({ text }),
  'JSON pointer': (text) => text.replaceAll('~', '~0').replaceAll('/', '~1'),
  URL: encodeURIComponent,
  query: (text) => new URLSearchParams({ text }).toString(),
  hexadecimal: (text) => Buffer.from(text).toString('hex'),
  'upper hexadecimal': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64 for URLs': (text) => Buffer.from(text).toString('base64url'),
};

it.each(Object.entries(ENCODINGS))('a secret is not in a text that holds it in this form: %s', (name, encode) => {
  fc.assert(
    fc.property(secretText, fc.string(), fc.string(), (secret, before, after) => {
      const redacted = makeRedact([secret])(encode(`${before}${secret}${after}`));
      expect(redacted).toContain('[redacted]');
      for (const [form, encoded] of Object.entries(ENCODINGS))
        if (form === name && name !== 'JSON' && name !== 'query') expect(redacted).not.toContain(encoded(secret));
    }),
    { numRuns: 300 },
  );
});

it('leaves other texts as they are', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes('a-secret-of-some-length'));
      expect(makeRedact(['a-secret-of-some-length', ''])(text)).toBe(text);
    }),
  );
});

it('takes out every one of several secrets, also one that is part of another', () => {
  expect(makeRedact(['whsec_abcdefgh', 'abcdefgh'])('whsec_abcdefgh and abcdefgh')).toBe('[redacted] and [redacted]');
});
