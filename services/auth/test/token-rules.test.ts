import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { hashToken, isWellFormed, makeToken, SERVER_TOKEN } from 'platform/core/bearer-token.ts';
import { hintOf, requireExpiry } from '../src/server-tokens/rules.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('a server token', () => {
  it('is aks_ and 49 base62 characters, is well formed, and never repeats', () => {
    const tokens = Array.from({ length: 500 }, () => makeToken(SERVER_TOKEN));
    for (const token of tokens) expect(token).toMatch(/^aks_[0-9A-Za-z]{49}$/);
    expect(tokens.every((token) => isWellFormed(SERVER_TOKEN, token))).toBe(true);
    expect(new Set(tokens).size).toBe(500);
  });

  it('is found by the regular expression for secret scanners in SECURITY.md', () => {
    const security = readFileSync(new URL('../../../SECURITY.md', import.meta.url), 'utf8');
    const [, expression] = /secret scanners is `([^`]+)`/.exec(security)!;
    const token = makeToken(SERVER_TOKEN);
    expect(new RegExp(expression!).exec(`curl -H "Authorization: Bearer ${token}"`)![0]).toBe(token);
  });

  it('is not well formed after any change of a single character', () => {
    fc.assert(
      fc.property(
        fc.constant(null).map(() => makeToken(SERVER_TOKEN)),
        fc.nat(52),
        fc.constantFrom(...BASE62, '_', '-', ' ', 'é', '\n'),
        (token, place, character) => {
          fc.pre(token[place] !== character);
          return !isWellFormed(SERVER_TOKEN, token.slice(0, place) + character + token.slice(place + 1));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('is not well formed when it is cut or extended, nor is any other text', () => {
    const token = makeToken(SERVER_TOKEN);
    for (const text of [
      '',
      'aks_',
      token.slice(0, -1),
      token.slice(1),
      `${token}0`,
      `${token}\n`,
      ` ${token}`,
      token.toLowerCase(),
      `aks_${'0'.repeat(49)}`,
    ])
      expect(isWellFormed(SERVER_TOKEN, text)).toBe(false);
    fc.assert(fc.property(fc.string(), (text) => !isWellFormed(SERVER_TOKEN, text)));
  });

  it('ends with the CRC-32 (IEEE) of all before, in six base62 digits', () => {
    // crc32 of "aks_" and 43 zeros, computed with Python's zlib: 0x5892d2a8
    expect(isWellFormed(SERVER_TOKEN, `aks_${'0'.repeat(43)}1cZAxE`)).toBe(true);
  });

  it('is stored as its SHA-256 and listed by its first 8 characters', () => {
    expect(hashToken('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(hintOf('aks_0123456789')).toBe('aks_0123');
  });

  it.each([
    '',
    'tomorrow',
    '2030-01-31',
    '2030-01-31T12:00:00',
    '2030-13-31T12:00:00Z',
    '2019-12-31T23:59:59Z',
    '2020-01-01T00:00:00Z',
  ])('cannot expire at %j when the year is 2020', (text) => {
    expect(() => requireExpiry(text, Date.UTC(2020))).toThrow();
  });

  it('expires at an ISO-8601 time with a zone', () => {
    expect(requireExpiry('2030-01-31T12:00Z', Date.UTC(2020))).toBe(Date.UTC(2030, 0, 31, 12));
    expect(requireExpiry('2030-01-31T12:00:00+02:00', Date.UTC(2020))).toBe(Date.UTC(2030, 0, 31, 10));
  });
});
