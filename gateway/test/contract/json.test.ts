import fc from 'fast-check';
import { ServiceError } from 'platform/core/errors.ts';
import { parseJson, pointerTo } from '../../src/contract/json.ts';

const errorOf = (text: string): { reason: string; path: string | undefined } | undefined => {
  try {
    parseJson(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { reason: error.reason, path: error.details[0]?.path };
  }
};
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it('pointerTo keeps at most 100 characters of a name', () => {
  expect(pointerTo('n'.repeat(100))).toBe(`/${'n'.repeat(100)}`);
  expect(pointerTo('/'.repeat(101))).toBe(`/${'~1'.repeat(99)}…`);
});

describe('parseJson rejects', () => {
  it.each([
    ['a duplicate name', '{"a":1,"a":1}', '/a'],
    ['a duplicate name spelled with an escape', '{"ab":1,"\\u0061b":1}', '/ab'],
    ['a duplicate name deep inside', '[0,{"x":[{"a/b":1,"a/b":2}]}]', '/1/x/0/a~1b'],
    ['__proto__', '{"a":{"__proto__":1}}', '/a/__proto__'],
    ['__proto__ spelled with an escape', '{"\\u005f_proto__":1}', '/__proto__'],
    ['NUL in a string', '{"a":["x\\u0000"]}', '/a/0'],
    ['NUL in a name', '{"\\u0000":1}', '/\0'],
    ['an escaped lone surrogate', '{"a":"\\ud83d"}', '/a'],
    ['a lone surrogate without escape', '"\ud83d"', ''],
    ['an integer beyond 2^53-1', '{"a":9007199254740992}', '/a'],
    ['an integer below -(2^53-1)', '-9007199254740992', ''],
    ['an integer literal of any size', `1${'0'.repeat(30)}`, ''],
    ['1e16', '[1,1e16]', '/1'],
    ['an integer with a fraction of zeros', '9007199254740993.0', ''],
    ['a number that overflows', '1e309', ''],
    ['a negative number that overflows', '-1E+400', ''],
    ['65 levels', nested(65), '/0'.repeat(64)],
  ])('%s', (_, text, path) => {
    expect(errorOf(text)).toEqual({ reason: 'INVALID_REQUEST', path });
  });

  it.each(['', '{', '{"a":1,}', '01', '1.', "{'a':1}", '"\t"', 'undefined', '{"a" 1}', '[1 2]', '\ufeff{}'])(
    'the syntax of %j',
    (text) => {
      expect(errorOf(text)).toEqual({ reason: 'MALFORMED_JSON', path: undefined });
    },
  );
});

describe('parseJson keeps', () => {
  it.each([
    ['64 levels', nested(64)],
    ['the largest integer', '[9007199254740991,-9007199254740991,9.007199254740991e15]'],
    ['doubles of any size', '[1e21,1.7976931348623157e308,5e-324,-0.1,123456789012345.6]'],
    ['the same name in different objects', '[{"a":{"a":1}},{"a":2}]'],
    ['names like those of Object.prototype', '{"constructor":1,"toString":2,"hasOwnProperty":3,"":4}'],
    ['surrogate pairs', '["\\ud83d\\ude00","😀"]'],
    ['quotes and backslashes', '{"a\\\\":"\\"","b\\"":"\\\\"}'],
  ])('%s', (_, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it('the value of any text that it does not reject', () => {
    const legal = fc
      .json({ maxDepth: 6, stringUnit: 'binary' })
      .filter(
        (text) =>
          !text.includes('__proto__') && !text.includes('\\u0000') && errorOf(text)?.reason !== 'INVALID_REQUEST',
      );
    fc.assert(
      fc.property(legal, (text) => {
        expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it('any value made of supported parts', () => {
    const name = fc
      .string({ unit: 'grapheme-composite' })
      .filter((text) => text !== '__proto__' && !text.includes('\0'));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small', maxDepth: 8 },
        fc.maxSafeInteger(),
        fc.double({ min: -1e15, max: 1e15, noNaN: true }),
        name,
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value')),
        fc.dictionary(name, tie('value')),
      ),
    }));
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 2), (given, indent) => {
        const text = JSON.stringify(given, null, indent);
        expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(given));
      }),
    );
  });
});

it('parseJson accepts the same syntax as JSON.parse, for mutated texts', () => {
  const mutation = fc.record({
    at: fc.nat(),
    remove: fc.nat(2),
    insert: fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '-', '1', 'e', '.', '\\u0000', 'null', ' '),
  });
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.array(mutation, { minLength: 1, maxLength: 3 }), (text, mutations) => {
      const mutated = mutations.reduce((present, { at, remove, insert }) => {
        const index = at % (present.length + 1);
        return present.slice(0, index) + insert + present.slice(index + remove);
      }, text);
      let valid = true;
      try {
        JSON.parse(mutated);
      } catch {
        valid = false;
      }
      expect(errorOf(mutated)?.reason === 'MALFORMED_JSON').toBe(!valid);
    }),
    { numRuns: 2_000 },
  );
});
