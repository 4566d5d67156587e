import { conforms, rejection } from './schemas.ts';

const DRAFT_7 = 'http://json-schema.org/draft-07/schema#';

describe('a reference leads to the subschema', () => {
  it.each<[string, object, unknown, unknown]>([
    [
      "by the whole schema's URI",
      {
        $id: 'https://a.example/o.json',
        properties: { a: { $ref: 'https://a.example/o.json#/$defs/s' }, b: { $ref: 'o.json#/$defs/s' } },
        $defs: { s: { type: 'string' } },
      },
      { a: 'x', b: 'y' },
      { b: 1 },
    ],
    [
      'by the URI of one in it',
      { properties: { a: { $ref: 'item' } }, $defs: { s: { $id: 'item', type: 'string' } } },
      { a: 'x' },
      { a: 1 },
    ],
    [
      'by an absolute path, and a URN',
      {
        $id: 'http://h.example/one/two.json',
        $defs: { a: { $id: '/shared/a', type: 'string' }, b: { $id: 'urn:example:b', type: 'number' } },
        properties: { a: { $ref: '/shared/a' }, b: { $ref: 'urn:example:b' } },
      },
      { a: 'x', b: 1 },
      { b: 'x' },
    ],
    [
      'by a pointer within the part that has a URI',
      {
        $defs: { p: { $id: 'p', $defs: { q: { type: 'string' } }, properties: { a: { $ref: '#/$defs/q' } } } },
        $ref: 'p',
      },
      { a: 'x' },
      { a: 1 },
    ],
    [
      'by "$id": "#name" of draft-07',
      { $schema: DRAFT_7, definitions: { a: { $id: '#name', type: 'string' } }, items: { $ref: '#name' } },
      ['x'],
      [1],
    ],
    [
      'by "id" of draft-04',
      {
        $schema: 'http://json-schema.org/draft-04/schema#',
        id: 'http://h/',
        definitions: { a: { id: 'a', type: 'string' }, b: { id: '#b', type: 'number' } },
        properties: { a: { $ref: 'http://h/a' }, b: { $ref: '#b' } },
      },
      { a: 'x', b: 1 },
      { b: 'x' },
    ],
    [
      'under a keyword of OpenAPI, with others behind it',
      {
        $ref: '#/components/schemas/S',
        components: { schemas: { S: { items: { $ref: '#/components/schemas/T' } }, T: { type: 'string' } } },
      },
      ['x'],
      [1],
    ],
    [
      'under $defs in draft-07',
      { $schema: DRAFT_7, $defs: { a: { type: 'string' } }, items: { $ref: '#/$defs/a' } },
      ['x'],
      [1],
    ],
    [
      'in the schema of a dialect whose $ref hides others',
      { $schema: DRAFT_7, $ref: '#/a', a: { type: 'string' } },
      'x',
      1,
    ],
    [
      'by $dynamicRef where one schema has the anchor',
      { $dynamicAnchor: 'node', type: 'object', additionalProperties: { $dynamicRef: '#node' } },
      { a: { b: {} } },
      { a: { b: 1 } },
    ],
    [
      'by $recursiveRef',
      {
        $schema: 'https://json-schema.org/draft/2019-09/schema',
        $recursiveAnchor: true,
        type: 'object',
        additionalProperties: { $recursiveRef: '#' },
      },
      { a: { b: {} } },
      { a: { b: 1 } },
    ],
    [
      'by a URI that is relative to a URN',
      {
        $id: 'urn:example:a',
        $defs: { n: { $id: 'Node', type: 'string' } },
        properties: { a: { $ref: 'Node' }, b: { $ref: 'urn:Node' } },
      },
      { a: 'x', b: 'y' },
      { b: 1 },
    ],
    ['that is data elsewhere', { default: { type: 'string' }, items: { $ref: '#/default' } }, ['x'], [1]],
    [
      'that refers to one of the same place',
      { a: { b: { type: 'string' } }, anyOf: [{ $ref: '#/a/b' }, { $ref: '#/a' }], not: { $ref: '#/a/b' } },
      1,
      'x',
    ],
  ])('%s', (_, schema, valid, invalid) => {
    expect([conforms(schema, valid), conforms(schema, invalid)]).toEqual([true, false]);
  });

  it.each([
    ['http://json-schema.org/draft-04/schema#', 'http://json-schema.org/draft-04/schema'],
    ['http://json-schema.org/draft-06/schema#', 'https://json-schema.org/draft-06/schema#'],
    [DRAFT_7, DRAFT_7],
    ['https://json-schema.org/draft/2019-09/schema', 'https://json-schema.org/draft/2019-09/schema'],
    ['https://json-schema.org/draft/2020-12/schema', 'https://json-schema.org/draft/2020-12/schema#'],
  ])('in the meta-schema of its dialect: %s', ($schema, $ref) => {
    const schema = { $schema, properties: { s: { $ref } } };
    expect(conforms(schema, { s: { type: 'string', properties: { a: { minLength: 1 } } } })).toBe(true);
    expect(conforms(schema, { s: { type: 'strin' } })).toBe(false);
    expect(conforms(schema, { s: { properties: { a: { minLength: 'x' } } } })).toBe(false);
  });

  it('at a place in the meta-schema', () => {
    const $ref = 'http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger';
    const schema = { $schema: DRAFT_7, properties: { n: { $ref } } };
    expect([1, -1].map((n) => conforms(schema, { n }))).toEqual([true, false]);
    const vocabulary = { $ref: 'https://json-schema.org/draft/2020-12/meta/validation' };
    expect([{ minLength: 1 }, { minLength: -1 }].map((value) => conforms(vocabulary, value))).toEqual([true, false]);
  });
});

it('an $id in data, or beside a $ref of draft-07, is none', () => {
  const inEnum = { enum: [{ $id: 'item', type: 'null' }], $defs: { s: { $id: 'item', type: 'object' } }, $ref: 'item' };
  expect(conforms(inEnum, { $id: 'item', type: 'null' })).toBe(true);
  const besideRef = {
    $schema: DRAFT_7,
    $id: 'http://h/base/',
    definitions: { a: { $id: 'http://h/other/', $ref: 'b' }, b: { $id: 'b', type: 'string' } },
    items: { $ref: '#/definitions/a' },
  };
  expect([conforms(besideRef, ['x']), conforms(besideRef, [1])]).toEqual([true, false]);
});

it('an encoded $dynamicRef is one like any other', () => {
  const T = { $dynamicAnchor: 'T', type: 'string' };
  const schema = { $defs: { a: { $id: 'a', ...T }, b: { $id: 'b', ...T, $dynamicRef: 'a#%54' } }, $ref: 'b' };
  expect(rejection(schema)).toMatch('is not supported where several schemas have its anchor');
});

it('what is wrong only together with the meta-schema is told of the whole schema', () => {
  const $ref = 'https://json-schema.org/draft/2020-12/schema';
  const ofTheSameName = { $defs: { a: { $id: 'https://json-schema.org/draft/2020-12/meta/core' } }, $ref };
  expect(rejection(ofTheSameName, '/jsonSchema')).toBe('/jsonSchema this URI is that of several subschemas');
});
