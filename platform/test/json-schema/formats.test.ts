import { fullFormats, type FormatName } from 'ajv-formats/dist/formats.js';
import fc from 'fast-check';
import { withBudget } from '../../src/json-schema/budget.ts';
import { formats } from '../../src/json-schema/formats.ts';
import { GRAMMARS } from './format-grammars.ts';
import { conforms, messagesOf, TOO_COSTLY } from './schemas.ts';

type Check = (text: string) => boolean;
const ours = (name: string): Check => {
  const check = formats[name] as Check;
  return (text) => withBudget(Infinity, () => check(text));
};
function theirs(name: FormatName): Check {
  const format = fullFormats[name] as RegExp | Check | { validate: Check };
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format;
  return check instanceof RegExp ? (text) => check.test(text) : check;
}

/** Pieces of which texts of each format consist, with valid texts first. */
const PIECES: Record<string, string[]> = {
  date: ['2026-01-01', '2024-02-29', '2026-02-29', '-', '1', '٣'],
  time: [
    ...['12:00:00Z', '23:59:60+00:00', '00:29:60.25+00:30', '22:59:60-01:00'],
    ...['12', '23', '59', '60', ':', '.5', 'Z', 'z', '+01:00', '-0130', '+01', '24', ' '],
  ],
  'date-time': [
    '2026-01-01T00:00:00Z',
    '2024-02-29t22:59:60.5-01:00',
    '1900-02-29T12:00:00+01:00',
    '2026-01-01',
    'T',
    ' ',
    '\n',
    '12:00:00',
    'Z',
    '+1',
  ],
  duration: ['P1Y2M3DT4H5M6S', 'P4W', 'PT1S', 'P1Y2D', 'PT1H2S', 'P', 'T', '1', 'Y', 'M', 'D', 'H', 'S', 'W'],
  uri: [
    ...[
      'http://u:p@a.b:80/c?d#e',
      'a:b',
      'a://[::1]',
      'a:/x@[v1.a:b]:80/',
      'a://[1:2:3:4:5:6:7:8]?q',
      '[::ffff:1.2.3.4]',
      'a//b',
    ],
    ...['a:', '//', '/', '@', ':', '?', '#', '[', ']', '%41', '%4', '"', '~', '\\', 'é', ' ', '::', '[v.]'],
  ],
  url: [
    ...[
      'http://a.bc',
      'https://u:p@é-a.ée:8080/p?q#f',
      'ftp://8.8.8.8:21',
      'http://a/b@c.de/@',
      'http://10.1.1.1',
      'http://',
    ],
    ...[
      'HTTPS://',
      'httpſ://',
      '172.16.1.1',
      '192.168.0.1',
      '223.255.255.254',
      '@',
      '/',
      'a',
      '-',
      '.',
      ':',
      ':80',
      'bc',
      '1',
    ],
    ...['?', '#', '😀', '\ud800', 'K', '　', ' ', '\u2028'],
  ],
  'uri-template': [
    'http://a/{b}{?c,d*}{+e:10}',
    '{',
    '}',
    'a',
    '%41',
    '%',
    ',',
    '*',
    ':1',
    ':0',
    '/',
    '{#',
    '{|',
    '{a.b}',
    '.',
    '\x7f',
    '"',
    'é',
    '^',
    "'",
  ],
  email: [
    ...["a.b!#$%&'*+/=?^_`{|}~-c@d-e.fg", 'a@b.c', 'a@b', '"a \\" @b"@c.d', 'a@[1.2.3.4]', 'a@[IPv6:::1]'],
    ...['a', '.', '@', '-', '"', '\\', '[', ']', 'IPv6:', 'é', ' '],
  ],
  hostname: ['a-b.c0.d.', 'a'.repeat(63), `${'ab.'.repeat(84)}c`, 'a', '.', '-', '_', 'é'],
  ipv4: ['1.2.3.4', '255.255.255.255', '0.0.0.0', '256', '01', '.', '1'],
  ipv6: ['1:2:3:4:5:6:7:8', '::', '::ffff:1.2.3.4', '1::8', 'ffff', ':', '1.2.3.4', 'g', '12345'],
  uuid: ['urn:uuid:', '01234567-89ab-cdef-0123-456789ABCDEF', '-', '0123', 'g'],
  regex: [
    '^(?<a>x)\\k<a>{1,2}$',
    '[a-z]',
    '(',
    ')',
    '?',
    '*',
    '{',
    '|',
    '[',
    ']',
    '\\',
    'b-a',
    '\\Z',
    '(?<b>',
    '(?=',
    '\\k',
  ],
  'json-pointer': ['/a/0/~0~1', '/', '~', '~2', '#', 'é', ' ', '%'],
  'json-pointer-uri-fragment': ['#/a/%41/~0', '#', '/', '~', '~1', '%4', 'é', '%C3%A9'],
  'relative-json-pointer': ['0/a~1', '1#', '10', '01', '/', '#', '~', '~0'],
  byte: ['QUJD', 'QQ==', 'QUI=', 'Q', '=', '+/', '-', '_', ' '],
};
const SAME_AS: Record<string, string> = { 'iso-time': 'time', 'iso-date-time': 'date-time', 'uri-reference': 'uri' };

/** Texts for which our verdict differs from that of ajv-formats on purpose. */
const DELIBERATE: Record<string, Check> = {
  // ajv-formats lets a host have white space that is not ASCII, which no standard does.
  url: (text) => /\s/.test(text),
  // ajv-formats accepts a text of which one line is base64.
  byte: (text) => /[\n\r\u2028\u2029]/.test(text),
};

const referenceOf = (name: FormatName): Check => GRAMMARS[name] ?? theirs(name);
const names = (Object.keys(fullFormats) as FormatName[]).filter((name) => typeof formats[name] === 'function');

describe('the format', () => {
  it.each(names)('%s means what its standard says, or without a grammar here what ajv-formats does', (name) => {
    const [check, reference] = [ours(name), referenceOf(name)];
    const deliberate = DELIBERATE[name] ?? (() => false);
    const piece = fc.constantFrom(...PIECES[SAME_AS[name] ?? name]!);
    const piecewise = fc.array(fc.oneof({ weight: 9, arbitrary: piece }, fc.string({ unit: 'binary', maxLength: 2 })), {
      maxLength: 6,
    });
    /** A piece from which some characters are cut, and into which another piece is put. */
    const changed = fc
      .tuple(piece, piece, fc.nat(12), fc.nat(2))
      .map(([text, other, at, cut]) => text.slice(0, at) + other + text.slice(at + cut));
    const texts = fc.oneof(
      piece,
      changed,
      piecewise.map((pieces) => pieces.join('')),
    );
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(texts, (text) => {
        if (deliberate(text)) return;
        const expected = reference(text);
        verdicts[`${expected}`]++;
        if (check(text) !== expected) throw new Error(`${JSON.stringify(text)} is ${expected}`);
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(50);
  });

  it.each<[string, string[], string[]]>([
    [
      'date-time',
      [
        ...['2026-01-01T00:00:00Z', '2026-01-01t00:00:00z', '2024-02-29T23:59:59.123456789012345678901234567890+14:00'],
        ...[
          '2016-12-31T23:59:60Z',
          '2017-01-01T05:29:60+05:30',
          '2016-12-31T15:59:60.5-08:00',
          '0000-01-01T00:00:00-00:00',
        ],
        `2026-01-01T00:00:00.${'9'.repeat(1_000)}Z`,
      ],
      [
        ...['2026-01-01\n00:00:00Z', '2026-01-01 00:00:00Z', '2026-01-01\u00a000:00:00Z', '2026-01-01T00:00:00Z\n'],
        ...['2026-01-01T00:00:00+0100', '2026-01-01T00:00:00+01', '2026-01-01T00:00:00', '2026-01-01T00:00Z'],
        ...['2026-01-01T24:00:00Z', '2026-01-01T24:59:60+01:00', '2026-01-01T23:60:60+00:01', '2026-01-01T12:60:00Z'],
        ...['2026-01-01T22:59:60Z', '2026-01-01T23:59:60+01:00', '2026-01-01T23:59:61Z', '2026-01-01T23:58:60Z'],
        ...[
          '2023-02-29T00:00:00Z',
          '1900-02-29T00:00:00Z',
          '2026-13-01T00:00:00Z',
          '2026-00-01T00:00:00Z',
          '2026-01-00T00:00:00Z',
        ],
        ...[
          '2026-01-01T00:00:00+24:00',
          '2026-01-01T00:00:00+00:60',
          '2026-01-01T00:00:00.Z',
          '2026-01-01T00:00:00,5Z',
        ],
        ...[
          '26-01-01T00:00:00Z',
          '+2026-01-01T00:00:00Z',
          '20260101T000000Z',
          '2026-01-01TT00:00:00Z',
          '٢٠٢٦-01-01T00:00:00Z',
        ],
      ],
    ],
    [
      'time',
      ['00:00:00Z', '23:59:60z', '08:30:06.283185+05:30', '00:29:60+00:30'],
      ['00:00:00+01', '00:00:00+0100', '24:00:00Z', '24:00:60+00:01', '23:60:60+00:01', '00:00:00', ' 00:00:00Z'],
    ],
    [
      'iso-date-time',
      ['2026-01-01 00:00:00', '2026-01-01T00:00:00+01', '2026-01-01t00:00:00+0130'],
      ['2026-01-01\n00:00:00', '2026-01-01\t00:00:00Z', '2026-01-01T24:59:60+01', '2026-01-01T23:60:60+0001'],
    ],
  ])('%s is that of RFC 3339, or for iso- also what ISO 8601 has beside it', (name, valid, invalid) => {
    for (const text of valid) expect([text, conforms({ format: name }, text)]).toEqual([text, true]);
    for (const text of invalid) expect([text, conforms({ format: name }, text)]).toEqual([text, false]);
  });

  it('byte is base64 as in RFC 4648, without line breaks', () => {
    for (const text of ['', 'QUJD', 'QQ==', 'QUI=', 'QUJDQUI='])
      expect([text, ours('byte')(text)]).toEqual([text, true]);
    for (const text of [
      'QUJD\n',
      '\n',
      '!\n',
      'QUJD\nQUJD',
      'QUJD\r\nQUJD',
      '?\n\n?',
      'Q',
      'QQ',
      'QQ=',
      'Q===',
      '====',
      'QQ-_',
    ])
      expect([text, ours('byte')(text)]).toEqual([text, false]);
  });

  it('url has no white space', () => {
    for (const space of [' ', '\n', '　', '\u2028', '\ufeff'])
      expect(conforms({ format: 'url' }, `http://é${space}.com/`)).toBe(false);
  });

  it.each<[string, string, (length: number) => string]>([
    ['email', '320', (length) => `a@b.c${'d'.repeat(length - 5)}`],
    ['regex', '2000', (length) => 'a'.repeat(length)],
  ])('%s has at most %s characters', (name, maxLength, make) => {
    expect(conforms({ format: name }, make(Number(maxLength)))).toBe(true);
    expect(conforms({ format: name }, make(Number(maxLength) + 1))).toBe(false);
  });

  it('is ignored if it is unknown, or of another kind of value', () => {
    for (const name of ['iri', 'idn-email', 'password', 'binary', 'x'])
      expect(conforms({ format: name }, '?')).toBe(true);
    expect(conforms({ format: 'email' }, 1)).toBe(true);
    expect(conforms({ format: 'int32' }, 2 ** 31)).toBe(false);
  });

  it('is checked for a text of 256 KiB, and not two hundred times', () => {
    const text = `http://x.yz/${'a'.repeat(262_000)}`;
    for (const format of ['uri', 'url', 'uri-reference', 'uri-template']) expect(conforms({ format }, text)).toBe(true);
    expect(messagesOf({ allOf: Array(200).fill({ format: 'url' }) }, text)).toEqual(TOO_COSTLY);
  });
});
