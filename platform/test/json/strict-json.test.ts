import fc from 'fast-check';
import { ServiceError } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { pointerTo } from '../../src/json/pointer.ts';
import { strictJson } from '../../src/json/strict-json.ts';
import { costlyBodies } from './costly-bodies.ts';
import { Fault, slowStrictJson } from './slow-reader.ts';
import { leastCpuMsOf } from '../../../test/support/cpu-time.ts';
import { damaged } from '../../../test/support/damaged-text.ts';

/** The compact text, or the fault. */
const outcomeOf = (text: string): string | Fault => {
  try {
    return strictJson(Buffer.from(text)).toString();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return new Fault(error.reason as Fault['reason'], error.details[0]?.path);
  }
};
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it('pointerTo keeps at most 100 characters of a name', () => {
  expect(pointerTo('n'.repeat(100))).toBe(`/${'n'.repeat(100)}`);
  expect(pointerTo('/'.repeat(101))).toBe(`/${'~1'.repeat(99)}…`);
});

describe('strictJson rejects', () => {
  it.each([
    ['a duplicate name', '{"a":1,"a":1}', '/a'],
    ['a duplicate name spelled with an escape', '{"ab":1,"\\u0061b":1}', '/ab'],
    ['a duplicate name deep inside', '[0,{"x":[{"a/b":1,"a/b":2}]}]', '/1/x/0/a~1b'],
    ['a duplicate name after an object with the same names', '{"a":{"b":1,"c":2},"b":1,"b":2}', '/b'],
    ['a duplicate among many names', `{${Array.from('abcdefghijka', (c) => `"${c}":1`).join(',')}}`, '/a'],
    ['__proto__', '{"a":{"__proto__":1}}', '/a/__proto__'],
    ['__proto__ spelled with an escape', '{"\\u005f_proto__":1}', '/__proto__'],
    ['NUL in a string', '{"a":["x\\u0000"]}', '/a/0'],
    ['NUL in a name', '{"\\u0000":1}', '/\0'],
    ['an escaped lone surrogate', '{"a":"\\ud83d"}', '/a'],
    ['a pair of surrogates of which one is not escaped', '{"a":"\\ud83d\ude00"}', '/a'],
    ['an integer beyond 2^53-1', '{"a":9007199254740992}', '/a'],
    ['an integer below -(2^53-1)', '-9007199254740992', ''],
    ['an integer literal of any size', `1${'0'.repeat(30)}`, ''],
    ['1e16', '[1,1e16]', '/1'],
    ['an integer with a fraction of zeros', '9007199254740993.0', ''],
    ['a number that overflows', '1e309', ''],
    ['a negative number that overflows', '-1E+400', ''],
    ['65 levels', nested(65), '/0'.repeat(64)],
    ['a million levels', nested(1e6), '/0'.repeat(64)],
  ])('%s', (_, text, path) => {
    expect(outcomeOf(text)).toEqual(new Fault('INVALID_REQUEST', path));
  });

  it.each(['', ' ', '{', '{"a":1,}', '01', '1.', "{'a':1}", '"\t"', 'undefined', '{"a" 1}', '[1 2]', '\ufeff{}', '[}'])(
    'the syntax of %j',
    (text) => {
      expect(outcomeOf(text)).toEqual(new Fault('MALFORMED_JSON'));
    },
  );
});

describe('in a member that is a JSON Schema', () => {
  const read = (text: string): string => strictJson(Buffer.from(text), ['jsonSchema', 'é"']).toString();

  it.each([
    '{"jsonSchema":{"maximum":9223372036854775807,"properties":{"a":{"minimum":-1e16}}}}',
    '{"a":1,"jsonSchema":{"enum":[18446744073709551615]},"b":9007199254740991}',
    '{"é\\"":9007199254740993}',
  ])('strictJson keeps integers of any size: %s', (text) => expect(read(text)).toBe(text));

  it.each([
    ['in it, a number that overflows', '{"jsonSchema":{"maximum":1e309}}', '/jsonSchema/maximum'],
    ['an integer after it', '{"jsonSchema":{"maximum":1},"content":[9007199254740993]}', '/content/0'],
    ['an integer before it', '{"content":9007199254740993,"jsonSchema":{}}', '/content'],
    ['a member of this name below', '{"content":{"jsonSchema":9007199254740993}}', '/content/jsonSchema'],
    ['a longer name', '{"jsonSchema2":9007199254740993}', '/jsonSchema2'],
    ['a list', '[{"jsonSchema":9007199254740993}]', '/0/jsonSchema'],
  ])('but strictJson rejects %s', (_, text, path) =>
    expect(() => read(text)).toThrow(expect.objectContaining({ details: [expect.objectContaining({ path })] })),
  );
});

describe('strictJson keeps', () => {
  it.each([
    ['64 levels', nested(64)],
    ['the largest integer', '[9007199254740991,-9007199254740991,9.007199254740991e15]'],
    ['doubles of any size', '[1e21,1.7976931348623157e308,5e-324,-0.1,123456789012345.6]'],
    ['the same name in different objects', '[{"a":{"a":1}},{"a":2}]'],
    ['names like those of Object.prototype', '{"constructor":1,"toString":2,"hasOwnProperty":3,"":4}'],
    ['the order of names that look like integers', '{"b":1,"2":2,"1":3}'],
    ['characters of every length', '["é","€","😀"]'],
    ['quotes and backslashes', '{"a\\\\":"\\"","b\\"":"\\\\"}'],
  ])('%s', (_, text) => {
    expect(outcomeOf(text)).toBe(text);
  });

  it('no white space, and only the escapes that JSON.stringify writes', () => {
    const escapes = '" \\ud83d\\uDE00 \\u00e9 \\/ \\u002F \\u000a \\u001F \\u0022 \\u005c \\u007f \\b\\f\\n\\r\\t"';
    expect(outcomeOf(` {\r\n\t"a" : [ 1 , ${escapes} ] } \n`)).toBe(`{"a":[1,${JSON.stringify(JSON.parse(escapes))}]}`);
  });
});

describe('strictJson agrees with a slow reader', () => {
  const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r');
  const spelled = (character: string): fc.Arbitrary<string> => {
    const units = Array.from(character, (_, i) => character.charCodeAt(i).toString(16).padStart(4, '0'));
    return fc.constantFrom(JSON.stringify(character).slice(1, -1), `\\u${units.join('\\u').toUpperCase()}`);
  };
  const character = fc.constantFrom('a', 'b', '"', '\\', '/', '\n', '\x01', '_', 'é', '€', '\u2028').chain(spelled);
  const rare = fc.constantFrom(
    '__proto__',
    '\\u0000',
    '\\ud83d',
    '\\ude00',
    '\\ud83d\\ude00',
    '😀',
    '\\x',
    '\\u12',
    '\t',
  );
  const string = fc
    .array(fc.oneof({ weight: 60, arbitrary: character }, { weight: 1, arbitrary: rare }), { maxLength: 3 })
    .map((parts) => `"${parts.join('')}"`);
  const digits = fc.oneof(
    fc.nat(999).map(String),
    fc.stringMatching(/^[1-9]\d{13,20}$/),
    fc.constantFrom('9007199254740991', '9007199254740992', '900719925474099', '17976931348623157', '1', '10'),
  );
  const number = fc
    .record({
      sign: fc.constantFrom('', '', '-'),
      digits,
      fraction: fc.oneof(
        fc.constant(''),
        digits.map((text) => `.${text}`),
        fc.constantFrom('.0', '.9', '.99999', '.5'),
      ),
      exponent: fc.oneof(
        fc.constant(''),
        fc.integer({ min: -30, max: 30 }).map((e) => `e${e}`),
        fc.integer({ min: 280, max: 310 }).map((e) => `E+${e}`),
      ),
    })
    .map(({ sign, digits, fraction, exponent }) => sign + digits + fraction + exponent);
  const scalar = fc.oneof(string, number, fc.constantFrom('true', 'false', 'null', '0'));
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc
      .tuple(
        space,
        fc.oneof(
          { maxDepth: 5, depthSize: 'small' },
          scalar,
          fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
          fc
            .array(fc.tuple(space, string, space, tie('value')), { maxLength: 12 })
            .map(
              (members) =>
                `{${members.map(([before, name, after, item]) => `${before}${name}${after}:${item}`).join(',')}}`,
            ),
        ),
        space,
      )
      .map((parts) => parts.join('')),
  }));
  const agrees = (text: string): void => {
    const outcome = outcomeOf(text);
    expect(outcome).toEqual(slowStrictJson(text));
    let parsed: unknown;
    try {
      parsed = parseJson(text);
    } catch {
      expect(outcome).toBeInstanceOf(Fault);
      return;
    }
    if (outcome instanceof Fault) expect(outcome.reason).toBe('INVALID_REQUEST');
    else expect(parseJson(outcome)).toStrictEqual(parsed);
  };

  it('about texts of all kinds', () => {
    fc.assert(fc.property(value, agrees), { numRuns: 2_000 });
  });
  it('about numbers', () => {
    fc.assert(fc.property(number, agrees), { numRuns: 10_000 });
  });
  it('about objects with many names, of which few are equal', () => {
    const names = fc.array(fc.stringMatching(/^[ab\u00e9]{1,9}$/), { minLength: 9, maxLength: 300 });
    const object = fc.tuple(names, fc.boolean()).map(([given, isUnique]) => {
      const kept = isUnique ? [...new Set(given)] : given;
      return `{${kept.map((text) => `"${text}":0`).join(',')}}`;
    });
    fc.assert(fc.property(object, agrees), { numRuns: 500 });
  });
  it('about damaged texts', () => {
    const pieces = ['', '"', '\\', '{', '}', '[', ']', ',', ':', '-', '1', 'e', '.', '\\u0000', 'null', ' ', '\x1f'];
    fc.assert(
      fc.property(damaged(value, pieces), (text) => agrees(text.toWellFormed())),
      { numRuns: 2_000 },
    );
  });
  it.each(Object.entries(costlyBodies(1 << 12)))('about a body that is costly to read: %s', (_, text) => {
    agrees(text);
    expect(outcomeOf(text)).not.toBeInstanceOf(Fault);
  });
});

it('strictJson reads any legal body of 1 MiB in a few times what JSON.parse needs for its worst one', () => {
  const bodies = costlyBodies();
  const worst = bodies['objects of one member, each another']!;
  const parseMs = leastCpuMsOf(() => JSON.parse(worst));
  const ratios = Object.entries(bodies).map(([name, text]) => {
    const bytes = Buffer.from(text);
    return { name, ratio: leastCpuMsOf(() => strictJson(bytes)) / parseMs };
  });
  expect(ratios.filter(({ ratio }) => ratio > 5)).toEqual([]);
});
