import fc from 'fast-check';
import { withBudget } from 'platform/json-schema/budget.ts';
import { re2Of } from 'platform/json-schema/ecmascript-pattern.ts';
import { patternsOfSchema } from 'platform/json-schema/patterns.ts';

const TEXTS = ['a', 'b', 'Z', '_', '0', '-', ' ', '\t', '\v', '\r', '\n', '\b', '\0', '.', '[', ']', ':', '^'].concat([
  '\u00a0',
  '\u0085',
  '\u1680',
  '\u180e',
  '\u200b',
  '\u2028',
  '\u3000',
  '\ufeff',
  'é',
  '٣',
  '😀',
  '\u212a',
  'ſ',
]);
const ESCAPES = [
  '\\s',
  '\\S',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\t',
  '\\v',
  '\\n',
  '\\r',
  '\\f',
  '\\x41',
  '\\u00a0',
].concat(
  [
    '\\u{1F600}',
    '\\ud83d\\ude00',
    '\\cA',
    '\\0',
    '\\.',
    '\\[',
    '\\]',
    '\\/',
    '\\^',
    '\\$',
    '\\\\',
    '\\p{L}',
    '\\P{Lu}',
  ],
  ['\\p{Uppercase_Letter}', '\\p{gc=digit}', '\\p{Script=Latin}'],
);
const atom = fc.constantFrom('a', 'b', '0', '.', 'é', '😀', '-', '_', ' ', '\\b', '\\B', ...ESCAPES);
const inClass = fc.constantFrom('a', '0', '.', '😀', ' ', '[', ':', '^a', 'a-z', '[:alpha:', '\\-', '\\b', ...ESCAPES);
const characterClass = fc
  .tuple(fc.constantFrom('', '^'), fc.array(inClass, { maxLength: 3 }))
  .map(([not, members]) => `[${not}${members.join('')}]`);
const { pattern } = fc.letrec<{ pattern: string }>((tie) => {
  const [a, b] = [tie('pattern'), tie('pattern')];
  return {
    pattern: fc.oneof(
      { maxDepth: 3 },
      atom,
      characterClass,
      fc.tuple(a, b).map((both) => both.join('')),
      fc.tuple(a, b).map((both) => `(?:${both.join('|')})`),
      fc.tuple(a, fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?', '{0,}')).map(([of, times]) => `(${of})${times}`),
      a.map((of) => `(?<name>${of})`),
      a.map((of) => `^${of}$`),
    ),
  };
});

function orUndefined<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

describe('a pattern', () => {
  it('matches what a regular expression of ECMA-262 with the flag u matches, or is refused', () => {
    const texts = fc.array(fc.constantFrom(...TEXTS), { maxLength: 6 }).map((characters) => characters.join(''));
    let compared = 0;
    fc.assert(
      fc.property(pattern, texts, (source, text) => {
        // V8 finds \B between the halves of one character.
        fc.pre(!source.includes('\\B') || !text.includes('😀'));
        const expected = orUndefined(() => new RegExp(source, 'u'));
        const ours = orUndefined(() => patternsOfSchema().compile(source));
        if (!expected || !ours) return;
        compared++;
        expect([source, text, withBudget(1_000_000, () => ours.test(text))]).toEqual([
          source,
          text,
          expected.test(text),
        ]);
      }),
      { numRuns: 3_000 },
    );
    expect(compared).toBeGreaterThan(2_000);
  });

  it.each([
    ['\\a', '"\\a" in the pattern is no escape that can be checked'],
    ['\\Qa+\\E', '"\\Q" in the pattern is no escape that can be checked'],
    ['a\\z', '"\\z" in the pattern is no escape that can be checked'],
    ['(a)\\1', '"\\1" in the pattern is no escape that can be checked'],
    ['(?P<a>b)', '"(?P" in the pattern cannot be checked in linear time: only (…), (?:…) and (?<name>…) can'],
    ['(?<!a)b', '"(?<" in the pattern cannot be checked in linear time: only (…), (?:…) and (?<name>…) can'],
  ])('%s, which RE2 would understand differently, is refused', (source, message) => {
    expect(() => patternsOfSchema().compile(source)).toThrow(message);
  });

  it('is not much longer for RE2 when a class repeats what is long', () => {
    expect(re2Of(`[${'\\S\\s'.repeat(499)}]`).length).toBeLessThan(500);
    expect(
      patternsOfSchema()
        .compile(`^[${'\\S'.repeat(900)}]$`)
        .toString(),
    ).toHaveLength(1_804);
  });

  it.each([
    ['many \\s', ['\\s'.repeat(600), '\\S'.repeat(401)], 'more than 1000 uses of'],
    ['wide ranges without case', ['(?i)[B-\\u{1e942}]'], 'name more than 10000 characters'],
    ['wide ranges without case, of \\S', ['(?i:[\\Sa])'], 'name more than 10000 characters'],
    ['wide ranges without case, together', ['(?i)[\\u0100-\\u1fff]', '(?i)[\\x41-\\u{2000}]'], 'name more than 10000'],
    ['wide ranges without case, as characters', ['(?i)[!-退]'], 'name more than 10000'],
    ['long patterns without case', [`(?i)${'\\W'.repeat(249)}`], 'more than 500 characters'],
  ])('is refused for %s, which RE2 would compile for long', (_what, sources, message) => {
    const patterns = patternsOfSchema();
    expect(() => sources.map((source) => patterns.compile(source))).toThrow(message);
  });

  it('ignores case after (?i), as an extension', () => {
    expect(withBudget(1_000, () => patternsOfSchema().compile('^(?i)[a-z]bc\\S[à-þ]$').test('aBC.É'))).toBe(true);
  });
});
