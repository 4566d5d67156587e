import fc from 'fast-check';
import { parseJson } from '../../src/core/parse-json.ts';
import { leastCpuMsOf } from '../../../test/support/cpu-time.ts';

const ESCAPED = ['"', '\n', '\t', '\u0001', '\u001f'];
const text = (name: string): string => JSON.stringify({ before: 1, [name]: 2 });

it('a name is read as it is spelled, whatever earlier texts contained', () => {
  for (let round = 0; round < 100; round++) {
    parseJson(text('\\'));
    for (const name of ESCAPED) expect(parseJson(text(name))).toStrictEqual({ before: 1, [name]: 2 });
  }
  parseJson(text('\\u00'));
  expect(parseJson('{"before":1,"\\u0061bcd":2}')).toStrictEqual({ before: 1, abcd: 2 });
});

it('any value is read as JSON.stringify wrote it', () => {
  const name = fc
    .array(fc.constantFrom('\\', 'n', 'u', '0', ...ESCAPED, 'é'), { maxLength: 4 })
    .map((parts) => parts.join(''));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.constantFrom(null, true, false),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      name,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
    ),
  }));
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, '\t'), (given, indent) => {
      expect(parseJson(JSON.stringify(given, null, indent))).toStrictEqual(given);
    }),
    { numRuns: 5_000 },
  );
});

it('__proto__ is a member like any other', () => {
  for (const json of ['{"__proto__":{"a":1}}', '{"\\"":0,"__proto__":{"a":1}}'])
    expect(Object.getOwnPropertyDescriptor(parseJson(json), '__proto__')?.value).toEqual({ a: 1 });
});

it.each(['', '{"a\\"":1,}', '["\\x"]', '{"a\\n":1}}'])('a SyntaxError for %j', (json) => {
  expect(() => parseJson(json)).toThrow(SyntaxError);
});

it('values of every kind are read beside an escaped name', () => {
  const values =
    '[ 0 ,-0, 12345678901234567890,1e3,1.5,-7, true,false,null,"","\\u00e9\\ud800\\/\\b\\f\\r\\t\\n\\"", [ ],{ }]';
  const long = JSON.stringify('\n"\\é'.repeat(100));
  const text = ` {"\\n" : ${values} , "a":{"\\u0061":1,"b":2,"a":3}, ${long}:${long}, "":[[{"c":{}}],[]] } `;
  expect(parseJson(text)).toStrictEqual(JSON.parse(text));
});

it('a text with an escaped name is read in a few times the time of JSON.parse', () => {
  const CHARACTERS = 1 << 18;
  const text = (element: string): string =>
    `[{"\\n":0}${`,${element}`.repeat(Math.ceil(CHARACTERS / (element.length + 1)))}]`;
  const ratios = ['{"a":0}', '{"a":0},{"b":0}', '{"\\n":0}', '""', '"a"', '1'].map((element) => {
    const json = text(element);
    return { element, ratio: leastCpuMsOf(() => parseJson(json), 9) / leastCpuMsOf(() => JSON.parse(json), 9) };
  });
  expect(ratios.filter(({ ratio }) => ratio > 15)).toEqual([]);
});
