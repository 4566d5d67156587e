import { jest } from '@jest/globals';
import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { conforms, compile, many, object, TOO_COSTLY, messagesOf } from './schemas.ts';

/** Few values, so that many of them are equal; 0 and -0 are the same number in JSON, and so are 1 and 1.0. */
const { value: jsonValues } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(0, -0, 1, JSON.parse('1.0'), -1, 1e300, '', '1', 'a', 'é', true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom('a', 'b', '__proto__', '1', 'length'), tie('value')), { maxLength: 3 }).map(
      // In any order of members, which is not the order of their names.
      (members) => JSON.parse(`{${members.map(([name, value]) => `"${name}":${JSON.stringify(value)}`).join(',')}}`),
    ),
  ),
}));
/** The values as JSON, where -0 is 0. */
const areEqual = (a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)));

describe('equality', () => {
  it('in const, enum and uniqueItems is equality of JSON values, whatever the order of members', () => {
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(
        fc.array(jsonValues, { minLength: 1, maxLength: 4 }),
        jsonValues,
        fc.nat(7),
        (allowed, other, place) => {
          const value = place in allowed ? allowed[place] : other;
          const expected = allowed.some((one) => areEqual(one, value));
          expect(conforms({ enum: allowed }, value)).toBe(expected);
          expect(conforms({ const: allowed[0] }, value)).toBe(areEqual(allowed[0], value));
          const differ = allowed.every((one, i) => !allowed.slice(0, i).some((other) => areEqual(one, other)));
          expect(conforms({ uniqueItems: true }, allowed)).toBe(differ);
          verdicts[`${expected}`]++;
        },
      ),
      { numRuns: 500 },
    );
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(50);
  });

  it('of large values holds within one check only', () => {
    const schema = compile({ allOf: [{ const: many(100, (i) => i) }, { uniqueItems: true }, { minItems: 1 }] });
    const value = many(100, (i) => i);
    expect(schema.validate(value)).toEqual([]);
    value[7] = 8;
    expect(schema.validate(value)).toHaveLength(2);
  });
});

describe('what many subschemas ask of one large value', () => {
  const names = object(30_000, (i) => [`n${i}`, 0]);
  const objects = many(20_000, (i) => ({ [`n${i}`]: 0 }));
  const listings = jest.spyOn(Object, 'keys');
  const listed = (value: unknown): number => listings.mock.calls.filter(([of]) => of === value).length;
  beforeEach(() => listings.mockClear());
  afterAll(() => listings.mockRestore());

  it.each([
    ['lists', (i: number) => ({ not: { const: [i] } }), 0],
    ['objects', (i: number) => ({ not: { const: { a: i } } }), 1],
    ['numbers of members', (i: number) => ({ minProperties: i }), 1],
    ['objects with fewer members', (i: number) => ({ not: { maxProperties: i } }), 1],
  ])('is found out once at most: %s', (_, make, times) => {
    expect(messagesOf({ allOf: many<object>(60, make) }, names)).toEqual([]);
    expect(listed(names)).toBe(times);
  });

  it('costs nothing where a list has another length than those allowed', () => {
    const schema = compile({ allOf: many(60, (i) => ({ not: { const: [{ a: i }] } })) });
    listings.mockClear();
    expect(schema.validate(objects)).toEqual([]);
    expect(objects.some((one) => listed(one) > 0)).toBe(false);
  }, 60_000);

  it('is charged before it is done: the names of a large object are not sorted beyond the budget', () => {
    const sorts = jest.spyOn(Array.prototype, 'sort');
    const large = object(120_000, (i) => [`n${i}`, 0]);
    expect(messagesOf({ uniqueItems: true }, [large, 1])).toEqual(TOO_COSTLY);
    expect(sorts.mock.contexts.some((list) => (list as unknown[]).length === 120_000)).toBe(false);
    sorts.mockRestore();
  });

  it('has a limit where it cannot be shared', () => {
    expect(messagesOf({ items: { allOf: many(60, (i) => ({ not: { const: { a: i } } })) } }, objects)).toEqual(
      TOO_COSTLY,
    );
    expect(messagesOf({ allOf: many(60, () => ({ additionalProperties: { type: 'number' } })) }, names)).toEqual(
      TOO_COSTLY,
    );
  });
});
