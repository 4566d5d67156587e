import { DIALECTS, type Dialect } from 'platform/json-schema/dialects.ts';

type Snippets = Record<string, object[]>;

/** For each keyword small schemas with it alone, or with those that it needs. */
const SINCE_4: Snippets = {
  type: [{ type: 'object' }, { type: ['integer', 'array'] }, { type: 'string' }],
  enum: [{ enum: [1, 'a', [1, 1], {}] }],
  multipleOf: [{ multipleOf: 0.5 }],
  maximum: [{ maximum: 1 }],
  minimum: [{ minimum: 1 }],
  maxLength: [{ maxLength: 1 }],
  minLength: [{ minLength: 1 }],
  pattern: [{ pattern: '^a' }],
  format: [{ format: 'date-time' }],
  maxItems: [{ maxItems: 1 }],
  minItems: [{ minItems: 1 }],
  uniqueItems: [{ uniqueItems: true }],
  maxProperties: [{ maxProperties: 1 }],
  minProperties: [{ minProperties: 1 }],
  required: [{ required: [''] }, { required: ['a', 'b'] }],
  $ref: [{ $ref: '#/definitions/r' }],
  allOf: [{ allOf: [{ minimum: 1 }, { minProperties: 1 }] }, { allOf: [{ properties: { a: {} } }] }],
  anyOf: [
    { anyOf: [{ type: 'object' }, { maxItems: 1 }] },
    { anyOf: [{ required: ['a'], properties: { a: {} } }, {}] },
  ],
  oneOf: [{ oneOf: [{ minProperties: 1 }, { type: 'array' }] }],
  not: [{ not: { required: ['b'] } }, { not: { items: { type: 'string' } } }],
  dependencies: [{ dependencies: { a: ['', 'b'], b: { maxProperties: 2 } } }],
  properties: [{ properties: { a: { type: 'number' }, '': { type: 'number' } } }],
  items: [{ items: { type: 'number' } }],
  patternProperties: [
    { patternProperties: { '^a': { type: 'number' } } },
    { patternProperties: { '': { type: 'number' } } },
  ],
  additionalProperties: [{ additionalProperties: false }, { additionalProperties: { type: 'string' } }],
};
const LIST: Snippets = {
  items: [...SINCE_4['items']!, { items: [{ type: 'number' }, {}, { type: 'string' }] }],
  additionalItems: [
    { items: [{}], additionalItems: false },
    { items: [{ type: 'number' }], additionalItems: { type: 'number' } },
  ],
};
const EXCLUSIVE_AS_IN_4: Snippets = {
  exclusiveMaximum: [{ maximum: 1, exclusiveMaximum: true }],
  exclusiveMinimum: [{ minimum: 1, exclusiveMinimum: true }],
};
const SINCE_6: Snippets = {
  ...SINCE_4,
  exclusiveMaximum: [{ exclusiveMaximum: 1 }],
  exclusiveMinimum: [{ exclusiveMinimum: 1 }],
  const: [{ const: 1 }, { const: { a: 1 } }],
  contains: [{ contains: { type: 'string' } }, { contains: true }],
  propertyNames: [{ propertyNames: { minLength: 1 } }, { propertyNames: false }],
};
const SINCE_7: Snippets = {
  ...SINCE_6,
  if: [
    { if: { required: ['a'] }, then: { required: ['b'] } },
    { if: { minItems: 1 }, else: { type: 'object' } },
  ],
};
const SINCE_2019: Snippets = {
  ...SINCE_7,
  minContains: [
    { contains: { type: 'number' }, minContains: 2 },
    { contains: { type: 'null' }, minContains: 0 },
  ],
  maxContains: [
    { contains: { type: 'number' }, maxContains: 1 },
    { contains: true, minContains: 0, maxContains: 1 },
  ],
  dependentRequired: [{ dependentRequired: { a: [''] } }, { dependentRequired: { b: ['a', 'c'] } }],
  dependentSchemas: [{ dependentSchemas: { a: { required: ['b'] } } }, { dependentSchemas: { '': false } }],
  unevaluatedItems: [{ unevaluatedItems: false }, { unevaluatedItems: { type: 'number' } }],
  unevaluatedProperties: [{ unevaluatedProperties: false }, { unevaluatedProperties: { type: 'number' } }],
};
const OF: Record<Dialect, Snippets> = {
  'draft-04': { ...SINCE_4, ...LIST, ...EXCLUSIVE_AS_IN_4 },
  'draft-06': { ...SINCE_6, ...LIST },
  'draft-07': { ...SINCE_7, ...LIST },
  '2019-09': { ...SINCE_2019, ...LIST },
  '2020-12': {
    ...SINCE_2019,
    prefixItems: [{ prefixItems: [{ type: 'number' }, true, { type: 'string' }] }, { prefixItems: [true, false] }],
  },
};

export const VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    1,
    1.25,
    '',
    'a',
    'ba',
    '2026-01-01T00:00:00Z',
    [],
    [1],
    ['a'],
    [1, 1],
    [1, 'a', 'a'],
    [[], 1, 'a', 'b'],
  ],
  ...[{}, { a: 1 }, { '': 1 }, { a: 'x', b: 1 }, { a: 1, '': 'x', b: 2 }, { b: 'x' }],
];

/** The members of both, or of the two in an allOf where they have a keyword in common. */
const together = (one: object, other: object): object =>
  Object.keys(one).some((keyword) => keyword in other) ? { allOf: [one, other] } : { ...one, ...other };

/** Each keyword of the dialect beside each other one. */
export function pairs(dialect: Dialect): [name: string, schema: object][] {
  const keywords = Object.entries(OF[dialect]);
  return keywords.flatMap(([name, ones], i) =>
    keywords
      .slice(i + 1)
      .flatMap(([otherName, others]) =>
        ones.flatMap((one) =>
          others.map((other): [string, object] => [`${name} beside ${otherName}`, together(one, other)]),
        ),
      ),
  );
}

const DEFINITIONS = { definitions: { r: { type: ['object', 'array', 'number'], minProperties: 1 } } };
const schemaOf = (dialect: Dialect): string =>
  dialect.startsWith('draft')
    ? `http://json-schema.org/${dialect}/schema#`
    : `https://json-schema.org/draft/${dialect}/schema`;
export const whole = (dialect: Dialect, schema: object): object => ({
  $schema: schemaOf(dialect),
  ...DEFINITIONS,
  ...schema,
});
export { DIALECTS, type Dialect };
