import fc from 'fast-check';
import jsonata from 'jsonata';
import { prepareRealms } from '../../../src/runtimes/expression/realm.ts';

const LIMITS = { wallMs: 30_000, maxSteps: 2_000, outputBytes: 10_000 };
const realm = prepareRealms(() => undefined)();
const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 400);

/** What the expression makes of the text in the realm, and with the regular expressions of JavaScript. */
async function bothWays(source: string, t: string): Promise<[ours: unknown, expected: unknown]> {
  const expected: unknown = await jsonata(source)
    .evaluate({ t })
    .catch(() => 'failed');
  const ours = realm.evaluate(source, JSON.stringify({ t }), LIMITS);
  return [ours.outcome === 'succeeded' ? JSON.parse(ours.outputText) : 'failed', JSON.parse(JSON.stringify(expected))];
}

const CHARACTERS = ['a', 'b', 'A', 'K', 'ſ', '\u212a', 'µ', 'ß', 'é', 'É', '0', '_', '-', ' ', '\u00a0', '\ufeff'];
const LINE_ENDS = ['\n', '\r', '\r\n', '\u2028', '\u2029'];
const texts = fc.array(fc.constantFrom(...CHARACTERS, ...LINE_ENDS), { maxLength: 8 }).map((parts) => parts.join(''));
const atom = fc.constantFrom(
  ...[
    'a',
    'B',
    'k',
    's',
    'S',
    'μ',
    'é',
    'ẞ',
    '.',
    '-',
    '^',
    '$',
    '\\b',
    '\\B',
    '\\s',
    '\\S',
    '\\d',
    '\\w',
    '\\W',
    '\\n',
  ],
  ...[
    '\\-',
    '\\_',
    '\\a',
    '\\101',
    '[\\12]',
    '[a-é]',
    '[^ſ]',
    '\\x41',
    '\\u00e9',
    '\\0',
    '[^]',
    '[]',
    '[a-c]',
    '[^a-c]',
    '[\\w-.]',
    '[k-s]',
    '[^\\W]',
    '[^é]',
  ],
);
const quantifier = fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?', '+?', '??', '{0,3}');
const { pattern } = fc.letrec<{ pattern: string; repeated: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4 },
    atom,
    fc.tuple(tie('pattern'), tie('pattern')).map((both) => both.join('')),
    fc.tuple(tie('pattern'), tie('pattern')).map((both) => `(${both.join('|')})`),
    fc.tuple(tie('repeated'), quantifier).map((both) => both.join('')),
  ),
  // It takes a character and has no groups: what those hold is left over in RE2, and forgotten in JavaScript.
  repeated: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('a', '[^a]', '.', '\\s', '\\w', '[k-s]'),
    fc.tuple(tie('repeated'), atom, quantifier).map(([one, other, times]) => `(?:${one}|a(?:${other})${times})`),
  ),
}));
const flags = fc.constantFrom('', 'i', 'm', 'im');

describe('a regular expression of an expression', () => {
  it('finds what it finds in JSONata, with the flags i and m, in texts of characters of 16 bits', async () => {
    let matched = 0;
    await fc.assert(
      fc.asyncProperty(pattern, flags, texts, async (source, flag, text) => {
        const [ours, expected] = await bothWays(`[$match(t, /${source}/${flag})]`, text);
        expect([source, flag, text, ours]).toEqual([source, flag, text, expected]);
        if (Array.isArray(expected) && expected.length > 0) matched++;
      }),
      { numRuns: RUNS },
    );
    expect(matched).toBeGreaterThan(RUNS / 5);
  });

  it.each([
    ['$replace(t, /\\s+/, "_")', 'a\u00a0\ufeffb', 'a_b'],
    ['$match(t, /.+/).match', 'a\rb\u2028c', ['a', 'b', 'c']],
    ['$match(t, /^b$/m).match', 'a\r\nb\r\nc', 'b'],
    ['$contains(t, /^k$/i)', '\u212a', false],
    ['$replace(t, /\\a\\-\\_/, "x")', 'a-_', 'x'],
    ['$replace(t, /(?-i:a)b(?m:$)/i, "x")', 'aB\rAb', 'x\rAb'],
    ['$match(t, /a{1500}/).index', `b${'a'.repeat(1_600)}`, 1],
  ])('is understood as in JSONata: %s', async (source, text, expected) => {
    expect(await bothWays(source, text)).toEqual([expected, expected]);
  });

  it.each([
    ['/^.$/', '😀', true],
    ['/^\\p{Lu}$/', 'É', true],
    ['/^\\u{1F600}$/', '😀', true],
  ])('%s takes whole characters, and what the flag u adds, as it always has', (source, text, expected) => {
    const { outcome, ...result } = realm.evaluate(`$contains(t, ${source})`, JSON.stringify({ t: text }), LIMITS);
    expect([outcome, result]).toEqual(['succeeded', expect.objectContaining({ outputText: String(expected) })]);
  });
});
