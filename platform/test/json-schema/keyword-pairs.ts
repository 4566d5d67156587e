/** For each keyword small schemas with it alone, or with those that it needs. */
const OF_BOTH_DRAFTS: Record<string, object[]> = {
  type: [{ type: 'object' }, { type: ['integer', 'array'] }, { type: 'string' }],
  const: [{ const: 1 }, { const: { a: 1 } }],
  enum: [{ enum: [1, 'a', [1, 1], {}] }],
  multipleOf: [{ multipleOf: 0.5 }],
  maximum: [{ maximum: 1 }],
  exclusiveMaximum: [{ exclusiveMaximum: 1 }],
  minimum: [{ minimum: 1 }],
  exclusiveMinimum: [{ exclusiveMinimum: 1 }],
  maxLength: [{ maxLength: 1 }],
  minLength: [{ minLength: 1 }],
  pattern: [{ pattern: '^a' }],
  format: [{ format: 'date' }],
  maxItems: [{ maxItems: 1 }],
  minItems: [{ minItems: 1 }],
  uniqueItems: [{ uniqueItems: true }],
  maxProperties: [{ maxProperties: 1 }],
  minProperties: [{ minProperties: 1 }],
  required: [{ required: [''] }, { required: ['a', 'b'] }],
  $ref: [{ $ref: '#/definitions/r' }],
  allOf: [{ allOf: [{ minimum: 1 }, { minProperties: 1 }] }, { allOf: [{ properties: { a: true } }] }],
  anyOf: [
    { anyOf: [{ type: 'object' }, { maxItems: 1 }] },
    { anyOf: [{ required: ['a'], properties: { a: true } }, true] },
  ],
  oneOf: [{ oneOf: [{ minProperties: 1 }, { type: 'array' }] }],
  not: [{ not: { required: ['b'] } }, { not: { items: { type: 'string' } } }],
  if: [
    { if: { required: ['a'] }, then: { required: ['b'] } },
    { if: { minItems: 1 }, else: { type: 'object' } },
  ],
  dependencies: [{ dependencies: { a: ['', 'b'], b: { maxProperties: 2 } } }],
  properties: [{ properties: { a: { type: 'number' }, '': { type: 'number' } } }],
  items: [{ items: { type: 'number' } }],
  contains: [{ contains: { type: 'string' } }, { contains: true }],
  patternProperties: [
    { patternProperties: { '^a': { type: 'number' } } },
    { patternProperties: { '': { type: 'number' } } },
  ],
  additionalProperties: [{ additionalProperties: false }, { additionalProperties: { type: 'string' } }],
  propertyNames: [{ propertyNames: { minLength: 1 } }, { propertyNames: false }],
};
const OF: Record<string, Record<string, object[]>> = {
  '2020-12': {
    ...OF_BOTH_DRAFTS,
    prefixItems: [{ prefixItems: [{ type: 'number' }, true, { type: 'string' }] }, { prefixItems: [true, false] }],
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
  },
  'draft-07': {
    ...OF_BOTH_DRAFTS,
    items: [...OF_BOTH_DRAFTS['items']!, { items: [{ type: 'number' }, true, { type: 'string' }] }],
    additionalItems: [
      { items: [true], additionalItems: false },
      { items: [{ type: 'number' }], additionalItems: { type: 'number' } },
    ],
  },
};

export const VALUES: readonly unknown[] = [
  ...[null, true, 0, 1, 1.25, '', 'a', 'ba', [], [1], ['a'], [1, 1], [1, 'a', 'a'], [[], 1, 'a', 'b']],
  ...[{}, { a: 1 }, { '': 1 }, { a: 'x', b: 1 }, { a: 1, '': 'x', b: 2 }, { b: 'x' }],
];

/** The members of both, or of the two in an allOf where they have a keyword in common. */
const together = (one: object, other: object): object =>
  Object.keys(one).some((keyword) => keyword in other) ? { allOf: [one, other] } : { ...one, ...other };

/** Each keyword beside each other one. */
export function pairs(draft: string): [name: string, schema: object][] {
  const keywords = Object.entries(OF[draft]!);
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
const SCHEMA_OF: Record<string, string> = {
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
  'draft-07': 'http://json-schema.org/draft-07/schema#',
};
export const whole = (draft: string, schema: object): object => ({
  $schema: SCHEMA_OF[draft],
  ...DEFINITIONS,
  ...schema,
});
export const DRAFTS = Object.keys(OF);
