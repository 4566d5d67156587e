import { compileSchema } from '../../src/json-schema/schema.ts';
import { conforms, rejection } from './schemas.ts';

const URIS = {
  'draft-04': 'http://json-schema.org/draft-04/schema',
  'draft-06': 'http://json-schema.org/draft-06/schema',
  'draft-07': 'http://json-schema.org/draft-07/schema',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
};

describe.each(Object.entries(URIS))('%s', (_, uri) => {
  it.each([uri, `${uri}#`, uri.replace(/^https?/, 'http'), uri.replace(/^https?/, 'https')])(
    'is named by %s',
    ($schema) => {
      const schema = { $schema, type: 'object', properties: { a: { type: 'string' } } };
      expect([conforms(schema, { a: 'x' }), conforms(schema, { a: 1 })]).toEqual([true, false]);
    },
  );
});

it('http://json-schema.org/schema# is the newest', () => {
  expect(conforms({ $schema: 'http://json-schema.org/schema#', prefixItems: [{ type: 'string' }] }, [1])).toBe(false);
});

it.each(['3.1/dialect/base', '3.1/dialect/2024-11-10', '3.2/dialect/2025-09-17'])(
  'the dialect of OpenAPI %s is 2020-12 with annotations',
  (name) => {
    const schema = { $schema: `https://spec.openapis.org/oas/${name}`, prefixItems: [{ type: 'string' }], xml: {} };
    expect([['x'], [1]].map((value) => conforms(schema, value))).toEqual([true, false]);
  },
);

describe('a keyword means what it means in its dialect', () => {
  const verdicts = (dialect: keyof typeof URIS, schema: object, values: unknown[]): boolean[] =>
    values.map((value) => conforms({ $schema: URIS[dialect], ...schema }, value));

  it('draft-04: limits themselves are too small or too large by a boolean', () => {
    const schema = { minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: false };
    expect(verdicts('draft-04', schema, [1, 2, 3, 4])).toEqual([false, true, true, false]);
    expect(verdicts('draft-04', { minimum: 1, exclusiveMinimum: false }, [0, 1])).toEqual([false, true]);
  });

  it('draft-04 has no const, contains, propertyNames or if', () => {
    const later = { const: 1, contains: false, propertyNames: false, if: true, then: false };
    expect(verdicts('draft-04', later, [2, [], { a: 1 }])).toEqual([true, true, true]);
  });

  it('2019-09: a list of items, and what comes behind it', () => {
    const schema = { items: [{ type: 'string' }], additionalItems: { type: 'number' } };
    expect(verdicts('2019-09', schema, [['x', 1], [1], ['x', 'y']])).toEqual([true, false, false]);
    const one = { items: { type: 'string' }, additionalItems: false };
    expect(verdicts('2019-09', one, [['x', 'y'], [1]])).toEqual([true, false]);
    const closed = { items: [true], unevaluatedItems: false };
    expect(verdicts('2019-09', closed, [[1], [1, 2]])).toEqual([true, false]);
  });

  it('2019-09: contains evaluates nothing', () => {
    const schema = { contains: { type: 'string' }, unevaluatedItems: false };
    expect(verdicts('2019-09', schema, [['x'], [], [1, 'x'], [1, 'x', 'x']])).toEqual([false, false, false, false]);
    const counted = { contains: { type: 'number' }, maxContains: 1, unevaluatedItems: { type: 'string' } };
    expect(verdicts('2019-09', counted, [[1], [1, 'x'], ['x']])).toEqual([false, false, false]);
    const inBranch = { anyOf: [{ contains: true }], items: [true], unevaluatedItems: false };
    expect(verdicts('2019-09', inBranch, [[1], [1, 2]])).toEqual([true, false]);
  });

  it('drafts 4 to 7: what stands beside a $ref is ignored', () => {
    const schema = { definitions: { a: {} }, $ref: '#/definitions/a', type: 'string' };
    for (const dialect of ['draft-04', 'draft-06', 'draft-07'] as const)
      expect(verdicts(dialect, schema, [1])).toEqual([true]);
    expect(verdicts('2019-09', schema, [1])).toEqual([false]);
  });
});

describe('the form of another draft is named', () => {
  it.each([
    [{ items: [{ type: 'string' }] }, '/items this is the form of draft-07: say so in $schema, or use prefixItems'],
    [
      { properties: { n: { minimum: 1, exclusiveMinimum: true } } },
      '/properties/n/exclusiveMinimum this is the form of draft-04: say so in $schema, or give the limit itself',
    ],
    [
      { properties: { n: { required: true } } },
      '/properties/n/required this is the form of draft-03: list the required names in the schema of the object',
    ],
  ])('%j', (schema, expected) => expect(rejection(schema)).toBe(expected));

  it('but not for properties with such names', () => {
    expect(rejection({ properties: { items: [] } })).not.toContain('draft-07');
  });
});

it('a mistake in an alternative is told alone, without what the other alternatives say', () => {
  const $schema = 'http://json-schema.org/draft-07/schema#';
  expect(rejection({ $schema, items: [{ type: 'strin' }] })).toMatch(/^\/items\/0\/type type must be one of [^;]*$/);
  expect(rejection({ $schema, dependencies: { a: { minimum: 'x' } } })).toBe(
    '/dependencies/a/minimum minimum must be number',
  );
  expect(rejection({ $schema, items: [] })).toBe('/items items must NOT have fewer than 1 items');
});

it('limits beyond 2^53 compare as doubles', () => {
  const schema = compileSchema('{"minimum":-9223372036854775808,"maximum":9223372036854775807}');
  expect([0, 9007199254740991, 1e21, -1e21].map((value) => schema.validate(value).length)).toEqual([0, 0, 1, 1]);
});

it('a list is checked, each item by the subschema at its place', () => {
  for (const $schema of Object.values(URIS)) {
    const text = JSON.stringify({
      $schema,
      definitions: { s: { type: 'string' } },
      properties: { a: { $ref: '#/definitions/s' }, b: { properties: { c: { type: 'null' } } } },
    });
    const places = ['/properties/a', '/properties/b/properties/c'];
    const { validate } = compileSchema(text, { places });
    expect(validate(['x', null])).toEqual([]);
    expect(validate([null, null]).map(({ path }) => path)).toEqual(['/0']);
    expect(validate(['x', 1]).map(({ path }) => path)).toEqual(['/1']);
  }
});
