/** A memory type and contents of its objects, as a release before this one has accepted them. */
export interface StoredType {
  what: string;
  jsonSchema: object;
  /** JSON texts that are valid by any verdict: release 0.2.0 took them, and so does every later one. */
  valid: readonly string[];
  /** JSON texts that 0.2.0 took, although JSON Schema forbids them. */
  doubtful?: readonly string[];
  /** A JSON text that no release takes. */
  wrong?: string;
}

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';
const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema';

/** Every kind of schema that release 0.2.0 accepted. */
export const STORED_TYPES: readonly StoredType[] = [
  { what: 'anything', jsonSchema: {}, valid: ['{}', '{"n":1.0,"e":1e2,"long":9007199254740991,"":"no name"}'] },
  {
    what: 'draft-07 with definitions, a list of items, and keywords beside a $ref, which it ignores',
    jsonSchema: {
      $schema: DRAFT_07,
      $id: 'https://example.com/order.json',
      type: 'object',
      definitions: { id: { type: 'string', minLength: 2 } },
      properties: {
        id: { $ref: '#/definitions/id', maxLength: 1 },
        pair: { items: [{ type: 'string' }, { type: 'integer' }], additionalItems: false },
      },
      if: { required: ['pair'] },
      then: { required: ['id'] },
      dependencies: { id: ['pair'], pair: { minProperties: 2 } },
    },
    valid: ['{"id":"abc","pair":["a",1]}', '{}'],
    wrong: '{"id":"abc"}',
  },
  {
    what: 'draft-07 without "#" and by https',
    jsonSchema: {
      $schema: 'https://json-schema.org/draft-07/schema',
      contains: false,
      properties: { a: { const: 1 } },
    },
    valid: ['{"a":1}'],
    wrong: '{"a":2}',
  },
  {
    what: '2020-12 with nested $defs, $anchor and references into them',
    jsonSchema: {
      $schema: DRAFT_2020,
      $defs: {
        outer: { $defs: { inner: { type: 'integer' } }, properties: { n: { $ref: '#/$defs/outer/$defs/inner' } } },
        tree: { $anchor: 'tree', type: 'object', additionalProperties: { $ref: '#tree' } },
      },
      properties: { outer: { $ref: '#/$defs/outer' }, tree: { $ref: '#tree' } },
      unevaluatedProperties: false,
    },
    valid: ['{"outer":{"n":1},"tree":{"a":{"b":{}}}}'],
    wrong: '{"tree":{"a":1}}',
  },
  {
    what: 'dependencies of 2020-12, by its old and new names',
    jsonSchema: {
      dependencies: { a: ['b'] },
      dependentRequired: { b: ['c'] },
      dependentSchemas: { c: { propertyNames: { pattern: '^[a-z]$' } } },
    },
    valid: ['{"a":1,"b":2,"c":3}'],
    wrong: '{"a":1}',
  },
  {
    what: 'patterns',
    jsonSchema: {
      properties: {
        code: { type: 'string', pattern: '^\\p{Lu}{2}\\s?(?<number>\\d{1,4})$' },
        text: { pattern: '(?i)no' },
      },
      patternProperties: { '^x-\\w+$': { type: 'string', pattern: '[^\\s]' } },
      additionalProperties: false,
    },
    valid: ['{"code":"DE 12","text":"NOTE","x-a":"b"}'],
    wrong: '{"x-a":1}',
  },
  {
    what: 'formats',
    jsonSchema: {
      properties: {
        day: { format: 'date' },
        email: { format: 'email' },
        uri: { format: 'uri' },
        uuid: { format: 'uuid' },
        ip: { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] },
        regex: { format: 'regex' },
        count: { type: 'integer', format: 'int32' },
        price: { format: 'a-format-of-our-own' },
        span: { format: 'duration' },
      },
    },
    valid: [
      '{"day":"2024-02-29","email":"a@example.com","uri":"urn:a:b","uuid":"01890a5d-ac96-774b-bcce-b302099a8057"}',
      '{"ip":"::1","regex":"^a(?=b)$","count":7,"price":"free","span":"P1DT2H"}',
    ],
    wrong: '{"day":"2023-02-29"}',
  },
  {
    what: 'times',
    jsonSchema: { properties: { at: { format: 'date-time' }, time: { format: 'time' } } },
    valid: ['{"at":"2026-01-02t03:04:05.678z","time":"23:59:60Z"}'],
    doubtful: [
      '{"at":"2026-01-02 03:04:05Z"}',
      '{"at":"2026-01-02\\n03:04:05Z"}',
      '{"at":"2026-01-02T03:04:05+0100"}',
      '{"time":"10:00:00+01"}',
    ],
    wrong: '{"at":"yesterday"}',
  },
  {
    what: 'multipleOf',
    jsonSchema: {
      properties: { price: { multipleOf: 0.01 }, many: { multipleOf: 100_000_000 }, one: { multipleOf: 1 } },
    },
    valid: ['{"price":0.07}', '{"price":19.99,"many":200000000,"one":3.0}'],
    doubtful: ['{"price":0.30000000000000004}', '{"many":100000001}', '{"one":3.000000001}'],
    wrong: '{"price":0.005}',
  },
  {
    what: 'an empty name that is required',
    jsonSchema: { required: [''], properties: { '': { type: 'string' } } },
    valid: ['{"":"here"}'],
    doubtful: ['{}', '{"a":1}'],
    wrong: '{"":1}',
  },
  {
    what: 'rules behind an applicator',
    jsonSchema: {
      propertyNames: { maxLength: 4 },
      minProperties: 1,
      properties: { pair: { prefixItems: [{ type: 'integer' }, { type: 'integer' }], contains: { const: 1 } } },
    },
    valid: ['{"pair":[1,2,3]}'],
    doubtful: ['{}', '{"pair":[]}'],
    wrong: '{"longer":1}',
  },
  {
    what: 'keywords that nobody knows',
    jsonSchema: {
      'x-display': { order: 1 },
      widget: 'table',
      properties: {
        a: { type: 'string', 'x-unit': 'm', nullable: true, example: 'b', discriminator: { propertyName: 'a' } },
      },
    },
    valid: ['{"a":"b"}'],
    wrong: '{"a":null}',
  },
  {
    what: 'the definition of a tool, which is no schema',
    jsonSchema: { name: 'x', inputSchema: { type: 'object', properties: { a: { type: 'integer' } } } },
    valid: ['{"a":"anything"}'],
  },
  {
    what: 'a document of OpenAPI, which is no schema',
    jsonSchema: {
      openapi: '3.1.0',
      info: { version: '1' },
      paths: {},
      components: { schemas: { A: { type: 'object' } } },
    },
    valid: ['{"a":"anything"}'],
  },
  {
    what: 'bounds, an enum of several kinds, and schemas that are booleans',
    jsonSchema: {
      type: ['object', 'null'],
      properties: {
        n: { minimum: -9_007_199_254_740_991, exclusiveMaximum: 1e300 },
        one: { enum: [null, 1, 'a', [1], { b: 2 }] },
        any: true,
        none: false,
      },
      maxProperties: 3,
      not: { required: ['secret'] },
      oneOf: [{ required: ['n'] }, { required: ['one'] }],
    },
    valid: ['{"n":1e299,"any":[]}', '{"one":{"b":2}}'],
    wrong: '{"n":1,"secret":1}',
  },
];
