import type { ServiceError } from '../../src/core/errors.ts';
import { requireMeant } from '../../src/json-schema/authored.ts';

const complaints = (schema: Record<string, unknown>): string[] => {
  try {
    requireMeant(schema, '/s');
    return [];
  } catch (error) {
    return (error as ServiceError).details.map(({ path, message }) => `${path}: ${message}`);
  }
};

describe('a word that is one letter from a known one is refused, and the known one named', () => {
  it.each([
    ['requred', { requred: ['a'] }, 'required'],
    ['requierd', { requierd: ['a'] }, 'required'],
    ['Type', { Type: 'object' }, 'type'],
    ['item', { item: {} }, 'items'],
    ['additionalProperites', { additionalProperites: false }, 'additionalProperties'],
    ['minimun', { minimun: 1 }, 'minimum'],
    ['minlength', { minlength: 1 }, 'minLength'],
    ['ref', { ref: '#' }, '$ref'],
    ['tpye', { tpye: 'object' }, 'type'],
  ])('keyword %s', (word, schema, meant) => {
    expect(complaints({ minItems: 1, ...schema })).toEqual([
      `/s/${word}: ${word} is not a keyword of JSON Schema; did you mean "${meant}"?`,
    ]);
  });

  it('also in every place where a subschema is', () => {
    const bad = { requred: [] };
    const schema = {
      properties: { a: bad },
      $defs: { b: { items: bad } },
      anyOf: [{}, bad],
      additionalProperties: bad,
      dependentSchemas: { c: bad },
    };
    expect(
      complaints(schema)
        .map((text) => text.split(':')[0])
        .sort(),
    ).toEqual([
      '/s/$defs/b/items/requred',
      '/s/additionalProperties/requred',
      '/s/anyOf/1/requred',
      '/s/dependentSchemas/c/requred',
      '/s/properties/a/requred',
    ]);
  });

  it.each([
    ['emial', 'email'],
    ['datetime', 'date-time'],
    ['date-tim', 'date-time'],
    ['uri-refrence', 'uri-reference'],
    ['UUID', 'uuid'],
  ])('format %s', (format, meant) => {
    expect(complaints({ properties: { a: { type: 'string', format } } })).toEqual([
      `/s/properties/a/format: format is not a known format; did you mean "${meant}"?`,
    ]);
  });
});

describe('every other unknown word is an annotation', () => {
  it.each([
    { type: 'object', 'x-owner': 'sales', unit: 'EUR', label: 'Price', note: 'n', id: 'a', example: 1, nullable: true },
    { title: 't', description: 'd', default: {}, examples: [], deprecated: true, readOnly: true, $comment: 'c' },
    { properties: { propertie: {}, requred: {}, format: { type: 'string' } }, required: ['requred'] },
    { enum: [{ requred: 1 }], const: { propertie: 1 }, default: { propertie: 1 } },
    { format: 1, properties: 1, anyOf: 'x' },
    { properties: { a: { type: 'string', titles: 't', descriptions: 'd', defaults: 1 } } },
    { type: 'object', 'x-type': 'money', 'x-nullable': true, 'X-require': 1 },
  ])('%j', (schema) => expect(complaints(schema)).toEqual([]));

  it('so is a misspelled one beside the one that it is near to, which is checked', () => {
    expect(complaints({ types: 'a', type: 'object', patterns: [], pattern: 'a' })).toEqual([]);
  });

  it.each(
    (
      'uint8 uint16 uint32 uint64 uint128 int8 int128 float16 float32 uuid1 uuid4 uuid7 uuid8 ulid uid cuid cuid2 guid ' +
      'ksuid nanoid iri iri-reference idn-email idn-hostname byte binary password decimal date-time-local time-local ' +
      'ipv4network ipv6interface ipvanyaddress json-string partial-date unixtime iban color phone e164 base64url'
    ).split(' '),
  )('format %s', (format) => expect(complaints({ properties: { a: { format } } })).toEqual([]));

  it('and so is what comes after 500 unknown keywords, also in one object, because each costs time', () => {
    const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`unknown-${n}`, n]));
    expect(complaints({ type: 'object', ...unknown(499), requred: [] })).toHaveLength(1);
    expect(complaints({ type: 'object', ...unknown(500), requred: [] })).toEqual([]);
  });

  it('and so is what is deep or long, in time linear in the schema', () => {
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 20_000; level++) deep = { items: deep };
    expect(complaints(deep)).toEqual([]);
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`unknown-${n}`, n]));
    expect(complaints({ type: 'object', ...many })).toEqual([]);
  });
});

describe('what is no schema is no type', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['an OpenAPI document', { openapi: '3.1.0', info: {}, paths: {} }, /an API document/],
    ["a tool's definition", { name: 'x', inputSchema: { type: 'object', required: ['a'] } }, /"inputSchema"/],
    ['one with a description', { name: 'x', description: 'd', parameters: { type: 'object' } }, /"parameters"/],
    ['a wrapper', { dialect: 'd', schema: { type: 'object' }, definitions: { A: {} } }, /"schema"/],
    ['an example', { name: 'Ada', age: 36 }, /looks like an example.*"name"/],
    ['an example with a title', { title: 'Dune', author: 'Herbert' }, /looks like an example.*"author"/],
  ])('%s', (_, schema, sentence) => {
    expect(complaints(schema)).toEqual([expect.stringMatching(sentence)]);
  });

  it.each([{}, { $schema: 'https://json-schema.org/draft/2020-12/schema' }, { description: 'anything' }, { 'x-a': 1 }])(
    'but %j is one',
    (schema) => expect(complaints(schema)).toEqual([]),
  );
});

it('an empty enum is refused when the type is made', () => {
  expect(complaints({ properties: { a: { enum: [] } } })).toEqual([
    '/s/properties/a/enum: an empty enum allows no value at all',
  ]);
});
