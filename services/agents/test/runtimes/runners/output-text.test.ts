import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { parseJson } from 'platform/core/parse-json.ts';
import { isOutputText } from '../../../src/runtimes/runners/output-text.ts';
import { leastCpuMsOf } from '../../../../../test/support/cpu-time.ts';
import { damaged } from '../../../../../test/support/damaged-text.ts';

const LEVELS = 65;

/** The numbers and all other characters stay the same when members are put in another order. */
const isWrittenByStringify = (text: string): boolean => {
  const parts = (json: string): string[] => json.match(/[0-9][0-9.e+-]*|[^0-9]/gs)!.sort();
  try {
    return text.isWellFormed() && isDeepStrictEqual(parts(JSON.stringify(parseJson(text))), parts(text));
  } catch {
    return false;
  }
};

const strings = fc
  .array(
    fc.constantFrom('a', 'é', '"', '\\', '/', '\n', '\b', '\x01', '\x1f', '\x7f', '\u2028', '😀', '\ud83d', '\ude00'),
    {
      maxLength: 3,
    },
  )
  .map((parts) => parts.join(''));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(null, true, false, 0, 1, -7, 1e21, 5e-324, 0.1, 12345678901234567890),
    fc.double(),
    strings,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(strings, tie('value')), { maxLength: 12 }).map((members) => Object.fromEntries(members)),
  ),
}));

it('what JSON.stringify writes is accepted', () => {
  fc.assert(
    fc.property(value, (given) => {
      expect(isOutputText(JSON.stringify(given), LEVELS)).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

it('what it does not write is refused, and nothing else', () => {
  const pieces = [
    ...['', '"', '\\', '{', '}', '[', ']', ',', ':', '-', '1', 'e', 'e+', '.', '0', 'null', ' ', '\n', '\x1f'],
    ...['\\u0061', '\\u0000', '\\u000a', '\\ud83d', '\\ude00', '\\uDE00', '\ud83d', '\ude00', '\\/', '"a":1,', '1e999'],
  ];
  const written = value.map((given) => JSON.stringify(given));
  fc.assert(
    fc.property(damaged(written, pieces), (text) => {
      expect([text, isOutputText(text, LEVELS)]).toEqual([text, isWrittenByStringify(text)]);
    }),
    // it is written as 1.5159575709480133e+54, which has the same characters
    { numRuns: 3_000, examples: [['15.159575709480134e+53']] },
  );
});

it.each([
  ['members in another order', '{"b":1,"1":2}', true],
  ['a repeated name among few', '{"a":1,"b":2,"a":3}', false],
  ['a repeated name among many', `{${[...'abcdefghijka'].map((name) => `"${name}":1`).join(',')}}`, false],
  ['the same name in two objects', '[{"a":{"a":1}},{"a":2}]', true],
  ['the most levels', '['.repeat(LEVELS) + ']'.repeat(LEVELS), true],
  ['one more', '['.repeat(LEVELS + 1) + ']'.repeat(LEVELS + 1), false],
  ['a million levels', '['.repeat(1e6), false],
  ['a string that does not end', '"\\"', false],
])('%s', (_what, text, isAccepted) => {
  expect(isOutputText(text, LEVELS)).toBe(isAccepted);
});

it('a long text takes a few times what it takes to parse and to write it, at most', () => {
  for (const element of ['{"a":0},{"b":0}', '{"\\n":0}', '[]']) {
    const text = `[${`${element},`.repeat(500_000 / (element.length + 1))}0]`;
    expect(isOutputText(text, LEVELS)).toBe(true);
    const ratio = leastCpuMsOf(() => isOutputText(text, LEVELS)) / leastCpuMsOf(() => JSON.stringify(parseJson(text)));
    expect([element, ratio < 10 || ratio]).toEqual([element, true]);
  }
});
