import { fullFormats } from 'ajv-formats/dist/formats.js';
import { OverBudgetError, withBudget } from '../../src/json-schema/budget.ts';
import { formats } from '../../src/json-schema/formats.ts';
import { patternsOfSchema } from '../../src/json-schema/patterns.ts';
import { compile, many } from './schemas.ts';

type Check = (text: string) => boolean;
const letter = (i: number): string => String.fromCharCode(0x4e00 + 3 * i);
/** A pattern for each way in which RE2 can match, the cheap ones and those that do most for a character. */
const PATTERNS: Record<string, string> = {
  'one class': '^[a-z0-9-]*$',
  'a unicode class': '^\\p{L}*$',
  'many choices that one character decides': `^(?:${many(300, (i) => `${letter(i)}x`).join('|')})*$`,
  'many optional characters': `^(?:${many(300, (i) => `${letter(i)}?`).join('')}!)*$`,
  'many nested groups': `^(?:${'('.repeat(200)}a${')'.repeat(200)}b)*$`,
  'a long literal at the end': `^c[xy]*${'a'.repeat(450)}b${'a'.repeat(449)}$`,
  'a long literal': `${'a'.repeat(450)}b${'a'.repeat(449)}`,
  'nested repetitions': '^(a+)+$',
  'repetitions in a row': '.*.*.*.*.*.*.*.*=$',
  'counted repetitions': '(?:a?){100}a{100}',
  'choices anywhere': `(?:${many(100, (i) => `a${letter(i)}`).join('|')}x)+!`,
  'optional unicode classes': '(?:\\p{L}?\\p{N}?){20}$',
  'a fixed distance from the end': 'a.{9}$',
  'word boundaries': '(?:\\b\\B|\\ba|a\\b|[^q]\\b)+!',
  'letters of either case': '(?i:k|s|é)+!',
  'looks ahead from the beginning': '^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$',
  'looks ahead from everywhere': '(?:a(?=.*1)|(?!.*!)[^b](?=\\w))+=',
  'looks ahead within a look': '^(?!.*(?=a(?!b(?=.*k))).*!)',
  'looks behind': '(?<=a.*)(?:\\w(?<!1.{3}))+!',
  'many looks ahead': many(20, (i) => `(?!.*${letter(i)}x)`).join('') + '.*=$',
  'a high count': '^.{0,4000}$',
  'a high count after a choice': '^(?:a|ab|b)?(?:[^k]{1,900}|.{5,700})=?$',
  'high counts of a group': '^(?:a?b?!?.){0,600}$',
  'a high count anywhere': '[a1].{0,900}=',
};
const formatChecks = Object.keys(fullFormats).flatMap((name): [string, Check][] =>
  typeof formats[name] === 'function' ? [[`the format ${name}`, formats[name] as Check]] : [],
);
const patternChecks = Object.entries(PATTERNS).map(([name, source]): [string, Check] => {
  const pattern = patternsOfSchema().compile(source);
  return [`a pattern: ${name}`, (text) => pattern.test(text)];
});

/** Beginnings, repeated pieces, and ends: a near miss ends a text that was right until then. */
const FOR_FORMATS = {
  length: 1_024,
  heads: [
    ...['', 'http://', 'http://a.bc/', 'a:', 'a://', '#/', '/', '0/', 'P', 'PT', '{', '{a', '2026-01-01T00:00:00.'],
    ...['a@', 'a@b', 'urn:uuid:', '(?<', '[', '//[', '//a@['],
  ],
  pieces: [
    ...[
      'a',
      '1',
      '-',
      '.',
      '@',
      '/',
      ':',
      '%',
      '%4',
      '%41',
      '~',
      '~0',
      'a.',
      'a-',
      'a@',
      '/@',
      '@a',
      '=',
      'A',
      '[',
      ']',
    ],
    ...[
      '{a}',
      '{',
      '{a,',
      '(?<a>)|',
      '(',
      '\\',
      '#',
      '?',
      '1Y',
      '::',
      '/a@',
      '\n',
      ' ',
      '\u017f',
      'é',
      '　',
      '😀',
      '\ud800',
    ],
  ],
  ends: ['', '!', '\n', '@', 'é'],
};
const FOR_PATTERNS = {
  length: 256,
  heads: ['', 'c'],
  pieces: [
    ...['a', '1', '-', 'ab', 'a!', '!', '\n', 'k', '\u017f', 'é', '😀', '\ud800', 'a1', '=', 'aaaaaaaaab'],
    ...[letter(0), `${letter(0)}x`, `${letter(299)}x`, `a${letter(99)}x`],
  ],
  ends: ['', '!'],
};

/** Adverse texts, and of each the same four times as long. */
function adverseTexts(name: string): [short: string, long: string][] {
  const { length, heads, pieces, ends } = name.startsWith('a pattern') ? FOR_PATTERNS : FOR_FORMATS;
  const make = (head: string, piece: string, end: string, size: number) =>
    head + piece.repeat(Math.ceil(size / piece.length)) + end;
  return heads.flatMap((head) =>
    pieces.flatMap((piece) =>
      ends.map((end): [string, string] => [make(head, piece, end, length), make(head, piece, end, 4 * length)]),
    ),
  );
}

function microsOf(check: Check, text: string): number {
  const start = performance.now();
  withBudget(Infinity, () => check(text));
  return 1_000 * (performance.now() - start);
}

/** Times of a short and of a long text; the least of some, taken in turns, as others may have the processor. */
function leastMicros(check: Check, short: string, long: string, wanted: (short: number, long: number) => boolean) {
  let least: [number, number] = [Infinity, Infinity];
  for (let i = 0; i < 40; i++) {
    least = [Math.min(least[0], microsOf(check, short)), Math.min(least[1], microsOf(check, long))];
    if (wanted(...least)) break;
  }
  return least;
}

/** The units that a check takes from the budget, to within 2 %. */
function unitsOf(check: Check, text: string): number {
  const isEnough = (units: number): boolean => {
    try {
      withBudget(units, () => check(text));
      return true;
    } catch (error) {
      if (error instanceof OverBudgetError) return false;
      throw error;
    }
  };
  let units = 1;
  while (!isEnough(units)) units *= 2;
  for (let low = units / 2; units > low * 1.02;) {
    const middle = (low + units) / 2;
    if (isEnough(middle)) units = middle;
    else low = middle;
  }
  return units;
}

/** Below it, a clock says little. */
const NOISE_MICROS = 100;

describe('the check of a text', () => {
  it.each(formatChecks)('costs at most six times as much for a text four times as long: %s', (name, check) => {
    for (const [short, long] of adverseTexts(name)) {
      const isLinear = (time: number, timeOfLong: number) => timeOfLong <= 6 * time + NOISE_MICROS;
      const times = leastMicros(check, short, long, isLinear);
      expect([long.slice(0, 50), isLinear(...times) || times]).toEqual([long.slice(0, 50), true]);
    }
  });

  // RE2 takes another way for a long text than for a short one, so what is compared is the charge, which bounds it.
  it.each(patternChecks)('is charged at most six times as much for a text four times as long: %s', (name, check) => {
    const [[short, long]] = adverseTexts(name) as [[string, string]];
    expect(unitsOf(check, long)).toBeLessThan(6 * unitsOf(check, short));
  });

  it.each([...formatChecks, ...patternChecks])('is charged for what it costs: %s', (name, check) => {
    const reference = (text: string): boolean => (formats['json-pointer'] as Check)(text);
    const plain = `/${'a'.repeat(16_384)}`;
    const perUnit = leastMicros(reference, plain, plain, () => false)[0] / unitsOf(reference, plain);
    const texts = adverseTexts(name).flatMap(([short, long], i) => [[short], [long], [], [], [], []][i % 6]!);
    for (const text of ['', 'a', '(', '/', 'http://a.bc', ...texts]) {
      // A unit may cost forty times as much as one of the cheapest check; the holes were beyond a hundred times.
      const isCharged = (time: number) => time <= 40 * perUnit * unitsOf(check, text) + NOISE_MICROS;
      const [time] = leastMicros(check, text, '', isCharged);
      expect([text.slice(0, 50), isCharged(time) || time]).toEqual([text.slice(0, 50), true]);
    }
  });
});

describe('the compilation of patterns', () => {
  it('costs at most twelve times as much for four times as many choices', () => {
    const optional = (count: number) => ({ pattern: `^(?:${many(count, (i) => `${letter(i)}?`).join('')}!)*$` });
    const choices = (count: number) => ({ pattern: `^(?:${many(count, (i) => `${letter(i)}x`).join('|')})*$` });
    for (const make of [optional, choices]) {
      const compiled: Check = (count) => compile(make(Number(count))) !== undefined;
      const isBounded = (short: number, long: number) => long <= 12 * short;
      const [short, long] = leastMicros(compiled, '80', '320', isBounded);
      expect(isBounded(short, long) || [short, long]).toBe(true);
    }
  });
});
