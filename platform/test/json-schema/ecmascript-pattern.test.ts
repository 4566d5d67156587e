import fc from 'fast-check';
import { withBudget } from 'platform/json-schema/budget.ts';
import { patternsOfSchema } from 'platform/json-schema/patterns.ts';
import { testInRe2 } from 'platform/patterns/in-re2.ts';

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
const atom = fc.constantFrom('a', 'b', '0', '.', 'é', '😀', '-', '_', ' ', '\\b', '\\B', '^', '$', ...ESCAPES);
const inClass = fc.constantFrom('a', '0', '.', '😀', ' ', '[', ':', '^a', 'a-z', '[:alpha:', '\\-', '\\b', ...ESCAPES);
const characterClass = fc
  .tuple(fc.constantFrom('', '^'), fc.array(inClass, { maxLength: 3 }))
  .map(([not, members]) => `[${not}${members.join('')}]`);
/** Random patterns, with look-around of these kinds anywhere. */
const patternsWith = (...looks: string[]) =>
  fc.letrec<{ pattern: string }>((tie) => {
    const [a, b] = [tie('pattern'), tie('pattern')];
    return {
      pattern: fc.oneof(
        { maxDepth: looks.length === 0 ? 3 : 4 },
        atom,
        characterClass,
        fc.constantFrom('(?i:a)', '(?i:[^b])', '(?s:.)', '(?-i:a)'),
        fc.tuple(a, b).map((both) => both.join('')),
        fc.tuple(a, b).map((both) => `(?:${both.join('|')})`),
        fc
          .tuple(a, fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?', '{0,}', '{0}'))
          .map(([of, n]) => `(${of})${n}`),
        a.map((of) => `(?<name>${of})`),
        a.map((of) => `^${of}$`),
        ...looks.map((look) => a.map((of) => `(${look}${of})`)),
        ...looks.map((look) => fc.tuple(a, b).map(([of, then]) => `^(${look}${of})${then}`)),
      ),
    };
  }).pattern;
const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 1_500);

function orUndefined<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

/** V8 alone would also look for a match between the halves of a character. */
const matchesAnywhere = (sticky: RegExp, text: string): boolean =>
  ['', ...text].some((_, i, characters) => {
    sticky.lastIndex = characters.slice(0, i + 1).join('').length;
    return sticky.test(text);
  });

describe('a pattern', () => {
  it.each([
    ['without look-around', []],
    ['with look-ahead', ['?=', '?!']],
    ['with look-behind', ['?<=', '?<!']],
  ])('matches what a regular expression of ECMA-262 with the flag u matches, %s', (_what, looks) => {
    const text = fc.array(fc.constantFrom(...TEXTS), { maxLength: 6 }).map((characters) => characters.join(''));
    const texts = fc.array(text, { minLength: 3, maxLength: 3 });
    let [compared, matched] = [0, 0];
    fc.assert(
      fc.property(patternsWith(...looks), texts, (source, some) => {
        const expected = orUndefined(() => new RegExp(source, 'uy'));
        if (!expected) return;
        const ours = orUndefined(() => patternsOfSchema().compile(source));
        // V8 takes two groups of one name for sound that ECMA-262 does not.
        if (!ours && source.split('(?<name>').length > 2) return;
        // "(?i:\\S)" and others like it name too many characters.
        if (!ours && source.includes('(?i')) return;
        for (const one of some) {
          // V8 finds "K" and "ſ" by \w beside (?i:…).
          if (source.includes('(?i') && /[\u212aſ]/.test(one)) continue;
          const verdict = withBudget(1_000_000, () => ours!.test(one));
          expect([source, one, verdict]).toEqual([source, one, matchesAnywhere(expected, one)]);
          compared++;
          if (verdict) matched++;
        }
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS);
    expect(matched).toBeGreaterThan(compared / 10);
    expect(matched).toBeLessThan((compared * 9) / 10);
  });

  it.each<[string, string[], string[]]>([
    ['^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$', ['aA1bB2 x!'], ['aA1bB2', 'aabb1122', 'AABB1122']],
    ['^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$', ['1.5', '-0', '+.5'], ['', '-', '.', '1.5.']],
    [
      "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
      ['a.b@c.de'],
      ['.a@c.de', 'a..b@c.de'],
    ],
    ['^(?:(?!^-0$)-?(?:(?:0|[1-9]\\d*)))$', ['0', '-1'], ['-0', '01']],
    ['^[A-Z]{6}(?!00)[\\dA-Z]{2}(?:[\\dA-Z]{3})?$', ['DEUTDEFF', 'DEUTDEFF500'], ['DEUTDE00', 'DEUTDEF']],
    [
      '^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$',
      ['P3W', 'P1Y2M', 'PT1.5S', 'P1DT1H'],
      ['P', 'PT', 'P1YT', 'P1Y1W'],
    ],
    ['^(?!.*\\b(?:ab|ba)\\b)[ab ]+$', ['aab', 'a b'], ['ab', 'a ba b']],
    ['^(?![\\s\\S]*😀)', ['', '\ud83d', '\ude00'], ['a😀b']],
    ['(?<=\\$)\\d+$', ['$12'], ['12', '$']],
    ['^.+(?<!\\.)$', ['a.b'], ['a.']],
    ['^(?:\\p{Extended_Pictographic}|\\p{Emoji_Component})+$', ['😀', '1'], ['a']],
    ['^[\\p{ID_Start}_$][\\p{ID_Continue}$]*$', ['é1', '_'], ['1é', '']],
    ['^\\p{scx=Deva}\\p{sc=Latn}\\p{ASCII}$', ['\u0964aa'], ['aaa']],
  ])('%s is taken', (source, conforming, others) => {
    const pattern = patternsOfSchema().compile(source);
    for (const text of [...conforming, ...others]) {
      const verdict = withBudget(10_000, () => pattern.test(text));
      expect([text, verdict]).toEqual([text, conforming.includes(text)]);
      expect([text, verdict]).toEqual([text, new RegExp(source, 'u').test(text)]);
    }
  });

  it.each([
    ['\\a', '"\\a" in the pattern is no escape that can be checked'],
    ['\\Qa+\\E', '"\\Q" in the pattern is no escape that can be checked'],
    ['a\\z', '"\\z" in the pattern is no escape that can be checked'],
    ['(a)\\1', '"\\1" in the pattern refers back to a group, which cannot be checked in linear time'],
    ['(?<n>a)\\k<n>', '"\\k<n>" in the pattern refers back to a group'],
    ['(?P<a>b)', '"(?P" in the pattern begins no group that can be checked in linear time'],
    ['(?>a)b', '"(?>" in the pattern begins no group that can be checked in linear time'],
    ['(a', 'the pattern is no regular expression: unterminated group'],
    ['[b-a]', 'the pattern is no regular expression: range out of order in character class'],
    ['(?=a)(?<=b)', 'a pattern that looks both ahead and behind cannot be checked in linear time'],
    ['\\p{scx=Thai}\\p{scx=Grek}\\p{scx=Latn}\\p{XIDS}\\p{XIDC}', 'that RE2 does not know more than 4 times'],
    ['(?m:^a)', '"(?m:" in the pattern cannot be checked in linear time'],
    ['\\p{Foo}', 'the pattern is no regular expression: invalid property name'],
  ])('%s is refused, and the sentence says why', (source, message) => {
    expect(() => patternsOfSchema().compile(source)).toThrow(message);
  });

  it.each([
    ['\\-\\_\\:\\"\\\'\\<\\ \\@', ['-_:"\'< @'], ['-_']],
    ['^[\\w-.]+$', ['a-.'], ['a,']],
    ['^[.-\\w]+$', ['a-.'], ['/']],
    ['^[\\_\\-\\:]$', ['-', '_'], ['\\', ';']],
    ['^a{,5}$', ['a{,5}'], ['aaa']],
    ['^{a}]$', ['{a}]'], ['a']],
    ['^a{2}{$', ['aa{'], ['aa']],
    ['\\b+a', ['a'], ['b']],
    ['^\\é$', ['é'], ['e']],
  ])('%s is read as without the flag u, if it is nothing with it', (source, conforming, others) => {
    expect(() => new RegExp(source, 'u')).toThrow();
    const pattern = patternsOfSchema().compile(source);
    for (const text of [...conforming, ...others])
      expect([text, withBudget(1_000, () => pattern.test(text))]).toEqual([text, conforming.includes(text)]);
  });

  it.each([
    ['^.{0,4000}$', [0, 4_000], [4_001]],
    ['^a{17,1733}$', [17, 1_000, 1_733], [16, 1_734]],
    ['^a{1001,}$', [1_001, 3_000], [1_000]],
    ['^a{5000}$', [5_000], [4_999, 5_001]],
    ['^(?:a{50}){33,50}$', [1_650, 2_500], [1_649, 1_651, 2_550]],
    ['^(?:a{2,3}){0,600}$', [0, 2, 7, 1_799, 1_800], [1, 1_801]],
    ['^(?:(?:a{3}){0,40}){0,30}$', [0, 3, 3_600], [1, 3_603]],
    ['^(?=.{1,2048}$)a*$', [1, 2_048], [0, 2_049]],
  ])('%s counts right, and costs little if there is one way to count', (source, conforming, others) => {
    const pattern = patternsOfSchema().compile(source);
    for (const length of [...conforming, ...others]) {
      const verdict = withBudget(/\}\)\{0/.test(source) ? Infinity : 30_000, () => pattern.test('a'.repeat(length)));
      expect([length, verdict]).toEqual([length, conforming.includes(length)]);
    }
  });

  it.each([
    ['x{0,20000}', '"{0,20000}" in the pattern repeats more than 10000 times'],
    ['(?:x{0,100}){0,90}y{900}', 'with their repetitions written out they have 18949 instructions, and 10000 at most'],
    ['(?:(?:x{100}){100}){100}', 'with its repetitions written out it has 1020202 instructions, and 30000 at most'],
  ])('%s is refused, and the sentence names the limit', (source, message) => {
    expect(() => patternsOfSchema().compile(source)).toThrow(message);
  });

  it('is not much longer for RE2 when a class repeats what is long', () => {
    expect(testInRe2(`[${'\\S\\s'.repeat(499)}]`).re2.length).toBeLessThan(500);
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
    const matches = (source: string, text: string) =>
      withBudget(1_000, () => patternsOfSchema().compile(source).test(text));
    expect(matches('^(?i)[a-z]bc\\S[à-þ]$', 'aBC.É')).toBe(true);
    expect(['AB', 'aB', 'C'].map((text) => matches('^(?:a(?i)b|c)$', text))).toEqual([false, true, true]);
    expect(['aB', 'aBC', 'aBc'].map((text) => matches('^(?:a(?i)b)c?$', text))).toEqual([true, false, true]);
    expect(['aB', 'Ab'].map((text) => matches('a(?i)b(?=$)', text))).toEqual([true, false]);
  });
});
