import type { ServiceError } from '../../src/core/errors.ts';
import { checkSpelling } from '../../src/json-schema/spelling.ts';

const complaints = (schema: Record<string, unknown>): string[] => {
  try {
    checkSpelling(schema, '/s');
    return [];
  } catch (error) {
    return (error as ServiceError).details.map(({ path, message }) => `${path}: ${message}`);
  }
};

describe('a word that is a letter or two from a known one is refused, and the known one named', () => {
  it.each([
    ['propertys', { propertys: {} }, 'properties'],
    ['requred', { requred: ['a'] }, 'required'],
    ['Type', { Type: 'object' }, 'type'],
    ['item', { item: {} }, 'items'],
    ['additionalPropertys', { additionalPropertys: false }, 'additionalProperties'],
    ['minimun', { minimun: 1 }, 'minimum'],
    ['ref', { ref: '#' }, '$ref'],
    ['tpye', { tpye: 'object' }, 'type'],
  ])('keyword %s', (word, schema, meant) => {
    expect(complaints(schema)).toEqual([
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

  it('format', () => {
    expect(complaints({ properties: { mail: { type: 'string', format: 'emial' } } })).toEqual([
      '/s/properties/mail/format: format is not a known format; did you mean "email"?',
    ]);
  });
});

describe('what is not near a known word is an annotation', () => {
  it.each([
    { 'x-owner': 'sales', unit: 'EUR', label: 'Price', note: 'n', id: 'a', example: 1, nullable: true },
    { title: 't', description: 'd', default: {}, examples: [], deprecated: true, readOnly: true, $comment: 'c' },
    { properties: { propertys: {}, requred: {}, format: { type: 'string' } }, required: ['requred'] },
    { enum: [{ requred: 1 }], const: { propertys: 1 }, default: { propertys: 1 } },
    { format: 'iban' },
    { format: 1, properties: 1, anyOf: 'x' },
  ])('%j', (schema) => expect(complaints(schema)).toEqual([]));

  it('and so is what comes after 500 unknown keywords, also in one object, because each costs time', () => {
    const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`unknown-${n}`, n]));
    expect(complaints({ ...unknown(499), requred: [] })).toHaveLength(1);
    expect(complaints({ ...unknown(500), requred: [] })).toEqual([]);
  });

  it('and so is what is deep or long, in time linear in the schema', () => {
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 20_000; level++) deep = { items: deep };
    expect(complaints(deep)).toEqual([]);
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`unknown-${n}`, n]));
    expect(complaints(many)).toEqual([]);
  });
});
