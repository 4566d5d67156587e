import { compileSchema, type CompileOptions } from 'platform/json-schema/schema.ts';
import { checkSetNull } from '../src/types/relations.ts';

/** A type with relations that set null at `/r0`, `/r1` and so on, of which the schema forbids null at the last. */
function typeWith(count: number, $schema?: string) {
  const names = Array.from({ length: count }, (_, n) => `r${n}`);
  const schemaOf = (name: string) => ({ type: name === `r${count - 1}` ? 'string' : ['string', 'null'] });
  const relations = names.map((name) => ({ name, path: `/${name}`, cardinality: 'one', onDelete: 'setNull' }));
  return {
    organizationId: 'o',
    jsonSchema: JSON.stringify({
      $schema,
      properties: Object.fromEntries(names.map((name) => [name, schemaOf(name)])),
    }),
    relations: JSON.stringify(relations),
  };
}

it('schemas that together take too many steps are refused as such', () => {
  const compile = () => ({ bytes: 0, validate: () => [{ path: '', message: 'takes too many steps' }] });
  expect(() => checkSetNull({ compile }, typeWith(2))).toThrow(
    expect.objectContaining({
      reason: 'INVALID_SCHEMA',
      details: [{ path: '/jsonSchema', message: 'jsonSchema takes too many steps' }],
    }),
  );
});

it.each([undefined, 'http://json-schema.org/draft-07/schema#'])(
  'where relations set null, one schema is compiled for all of them (%s)',
  ($schema) => {
    let compiled = 0;
    const compile = (_organizationId: string, text: string, options?: CompileOptions) => {
      compiled++;
      return compileSchema(text, options);
    };
    expect(() => checkSetNull({ compile }, typeWith(32, $schema))).toThrow(
      expect.objectContaining({ details: [expect.objectContaining({ path: '/relations/31/onDelete' })] }),
    );
    expect(compiled).toBe(1);
  },
);

it.each<[string, object]>([
  [
    'a reference to the whole schema by its URI',
    { $id: 'http://h/a', properties: { r: { $ref: 'http://h/a#/$defs/k' } } },
  ],
  [
    'a reference to a keyword of others',
    { properties: { r: { $ref: '#/components/k' } }, components: { k: { type: 'string' } } },
  ],
  [
    'draft-04',
    { $schema: 'http://json-schema.org/draft-04/schema#', id: 'x', properties: { r: { $ref: 'x#/$defs/k' } } },
  ],
])('the schema of a relation is found by %s', (_, schema) => {
  const jsonSchema = JSON.stringify({ $defs: { k: { type: 'string' } }, ...schema });
  const relations = JSON.stringify([{ name: 'r', path: '/r', cardinality: 'one', onDelete: 'setNull' }]);
  const check = (text: string) => () =>
    checkSetNull(
      { compile: (_id, schema, options) => compileSchema(schema, options) },
      { organizationId: 'o', jsonSchema: text, relations },
    );
  expect(check(jsonSchema)).toThrow(
    expect.objectContaining({ details: [expect.objectContaining({ path: '/relations/0/onDelete' })] }),
  );
  expect(check(jsonSchema.replaceAll('"string"', '["string","null"]'))).not.toThrow();
});
