import { execFileSync } from 'node:child_process';
import { messagesOf, TOO_COSTLY, rejection, many, object, nested } from './schemas.ts';

const nestedSchema = (levels: number): object => (levels === 1 ? {} : { items: nestedSchema(levels - 1) });

describe('a schema is rejected', () => {
  it.each<[string, unknown, string]>([
    ['that is not JSON', '{', ' the schema is not JSON'],
    ['that is not an object', [], ' the schema must be an object'],
    ['over 64 KiB', { description: 'é'.repeat(33_000) }, ' the schema is larger than 65536 bytes'],
    ['over 32 levels of schemas', nestedSchema(33), ' schemas are nested in more than 32 levels'],
    [
      'over 64 levels of JSON',
      { default: JSON.parse(`${'['.repeat(64)}${']'.repeat(64)}`) },
      ' the JSON has more than 64 levels',
    ],
    [
      'of another draft',
      { $schema: 'http://json-schema.org/draft-03/schema#' },
      '/$schema $schema must be one of http://json-schema.org/draft-04/schema#, http://json-schema.org/draft-06/schema#, ' +
        'http://json-schema.org/draft-07/schema#, https://json-schema.org/draft/2019-09/schema, ' +
        'https://json-schema.org/draft/2020-12/schema',
    ],
    [
      'that breaks its meta-schema',
      { properties: { a: { type: 'strin' } } },
      '/properties/a/type type must be one of "array", "boolean", "integer", "null", "number", "object", "string"',
    ],
    [
      'with a remote reference',
      { $ref: 'http://169.254.169.254/x' },
      '/$ref this reference leads out of the schema, and nothing is fetched: ' +
        'put the schema that it names below $defs, with its $id',
    ],
    [
      'with a reference to nothing',
      { items: { $ref: '#/$defs/a' } },
      '/items/$ref this reference does not lead to a subschema',
    ],
    [
      'with a reference to what is no schema',
      { 'x-list': [1], items: { $ref: '#/x-list' } },
      '/items/$ref this reference does not lead to a subschema',
    ],
    [
      'with a reference to an unsound schema under a keyword of others',
      { components: { A: { type: 'strin' } }, $ref: '#/components/A' },
      '/components/A/type type must be one of "array", "boolean", "integer", "null", "number", "object", "string"',
    ],
    ['with a malformed reference', { $ref: '#/%zz' }, '/$ref this reference is not a well-formed URI fragment'],
    [
      'with a malformed $id',
      { properties: { a: { $id: 'http://[' } } },
      '/properties/a/$id this $id is no URI reference',
    ],
    [
      'with a part of another dialect',
      { $defs: { a: { $id: 'a', $schema: 'http://json-schema.org/draft-07/schema#' } } },
      '/$defs/a/$schema $schema must be the $schema of the whole schema',
    ],
    [
      "with a reference to another dialect's meta-schema",
      { items: { $ref: 'http://json-schema.org/draft-07/schema#' } },
      '/items/$ref this reference leads to the meta-schema of draft-07, but the schema is of 2020-12',
    ],
    [
      'with a dynamic reference that could lead to two places',
      {
        $dynamicAnchor: 'node',
        $defs: { a: { $id: 'a', $dynamicAnchor: 'node', items: { $dynamicRef: '#node' } } },
      },
      '/$defs/a/items/$dynamicRef $dynamicRef is not supported where several schemas have its anchor',
    ],
    [
      'with a reference to an anchor that occurs twice',
      { $defs: { a: { $anchor: 'x' }, b: { $anchor: 'x' } }, items: { $ref: '#x' } },
      '/items/$ref this name is that of several subschemas',
    ],
    [
      'with a reference to a URI that occurs twice',
      { $defs: { a: { $id: 'x' }, b: { $id: 'x' } }, items: { $ref: 'x' } },
      '/items/$ref this URI is that of several subschemas',
    ],
    [
      'with a pattern that looks ahead and behind',
      { items: { pattern: '^(?=a)b(?<!c)' } },
      '/items/pattern a pattern that looks both ahead and behind cannot be checked in linear time',
    ],
    [
      'with a back-reference',
      { patternProperties: { '(a)\\1': {} } },
      '/patternProperties/(a)\\1 "\\1" in the pattern refers back to a group, which cannot be checked in linear time',
    ],
    [
      'with a rule for a member that JavaScript treats apart',
      '{"items":{"properties":{"__proto__":{"type":"string"}}}}',
      '/items/properties a rule for a member named __proto__ cannot be checked',
    ],
    [
      'with contains and unevaluatedItems for one list',
      { allOf: [{ contains: { type: 'string' } }], unevaluatedItems: false },
      '/unevaluatedItems contains and unevaluatedItems cannot be combined',
    ],
    [
      'with an exploding pattern',
      { pattern: '((a{30}){30}b){90}' },
      '/pattern the pattern repeats too much: with its repetitions written out it has 86672 instructions, and 30000 at most',
    ],
    [
      'with repetitions of nothing',
      { pattern: '(){0,1000}'.repeat(199) },
      '/pattern the pattern repeats too much: with its repetitions written out it has 497502 instructions, and 30000 at most',
    ],
    [
      'with a long program',
      { pattern: '(ab{300}c{300}){10}(de|f|g){1000}' },
      '/pattern the patterns repeat too much: with their repetitions written out they have 10014 instructions, and 10000 at most',
    ],
    [
      'with many programs',
      { allOf: many(20, (i) => ({ pattern: `(ab|b|c){190}${i}` })) },
      '/allOf/13/pattern the patterns repeat too much: with their repetitions written out they have 10714 instructions, and 10000 at most',
    ],
    [
      'with 5,000 properties',
      { properties: object(5_000, (i) => [`${i}`, {}]) },
      '/properties/999 the schema has more than 1000 subschemas',
    ],
    [
      'with more patterns than 200',
      { properties: object(201, (i) => [`${i}`, { pattern: `^${i}` }]) },
      '/properties/200/pattern the schema has more than 200 patterns',
    ],
    [
      'with more unicode classes than 50',
      { pattern: '\\p{L}'.repeat(51) },
      '/pattern the patterns have more than 50 unicode classes',
    ],
    ['with a huge enum', { enum: many(5_001, (i) => i) }, '/enum an enum has more than 5000 values'],
    ['with too many branches', { anyOf: many(251, () => ({})) }, '/anyOf anyOf has more than 250 entries'],
    ['that refers to itself', { $ref: '#' }, ' references loop here without consuming anything of the value'],
    [
      'whose references loop',
      { $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { $ref: '#/$defs/a' } } },
      '/$defs/a references loop here without consuming anything of the value',
    ],
    [
      'whose references double at every level',
      {
        $defs: object(31, (i) => [
          `d${i}`,
          i === 30 ? {} : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
        ]),
      },
      '/$defs/d19 references make one value be checked more than 5000 times',
    ],
  ])('%s', (_name, schema, expected) => expect(rejection(schema)).toBe(expected));

  it('with paths that begin with its pointer in the request', () => {
    expect(rejection({ items: { $ref: 'x' } }, '/jsonSchema')).toMatch(/^\/jsonSchema\/items\/\$ref /);
    expect(rejection({ type: 1 }, '/jsonSchema')).toMatch(/^\/jsonSchema\/type /);
    expect(rejection('', '/jsonSchema')).toMatch(/^\/jsonSchema the schema/);
  });

  it.each<[string, unknown]>([
    ['conditions on names', { dependentRequired: object(60, (i) => [`k${i}`, many(48, (j) => `r${j}`)]) }],
    ['one long condition on names', { dependentRequired: { a: many(250, (j) => `r${j}`) } }],
    [
      'conditions of draft-07',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        dependencies: object(60, (i) => [`k${i}`, many(48, (j) => `r${j}`)]),
      },
    ],
    ['required names', { properties: object(300, (i) => [`p${i}`, { required: many(10, (j) => `r${j}`) }]) }],
    [
      'keywords',
      {
        properties: object(400, (i) => [
          `p${i}`,
          { type: 'string', minLength: 1, maxLength: 9, minimum: 1, maximum: 9, minItems: 1, maxItems: 9 },
        ]),
      },
    ],
    ['alternatives', { allOf: many(4, () => ({ oneOf: many(240, (i) => ({ minLength: i, type: 'string' })) })) }],
    [
      'long paths',
      { properties: { ['y'.repeat(3_000)]: { properties: object(100, (i) => [`p${i}`, { type: 'string' }]) } } },
    ],
    [
      'references',
      {
        $defs: object(490, (i) => [`d${i}`, { type: 'string' }]),
        properties: object(490, (i) => [`p${i}`, { $ref: `#/$defs/d${i}` }]),
      },
    ],
    [
      'names that references evaluate',
      {
        $defs: { d: { properties: object(200, (i) => [`p${i}`, true]) } },
        anyOf: [{ properties: { a: true } }],
        allOf: many(100, () => ({ $ref: '#/$defs/d' })),
        unevaluatedProperties: false,
      },
    ],
  ])('when its code would be long: %s', (_name, schema) => {
    expect(rejection(schema)).toMatch(
      / the schema has too many rules: subschemas, keywords, patterns and required names together weigh more than 3200$/,
    );
  });
});

describe('how many references may stand in a row', () => {
  const chain = (last: object) => ({
    $ref: '#/$defs/d0',
    $defs: object(450, (i) => [`d${i}`, i === 449 ? last : { $ref: `#/$defs/d${i + 1}` }]),
  });

  it('does not depend on how much V8 has optimized', () => {
    const program = `
      const { compileSchema } = await import('${import.meta.resolve('../../src/json-schema/schema.ts')}');
      const compiled = compileSchema(${JSON.stringify(JSON.stringify(chain({ type: 'string' })))});
      console.log(JSON.stringify(['x', 1].map((value) => compiled.validate(value).length)));`;
    const flags = ['--no-opt', '--no-maglev', '--no-sparkplug', '--no-warnings', '--input-type=module'];
    expect(execFileSync(process.execPath, [...flags, '--eval', program], { encoding: 'utf8' })).toBe('[0,1]\n');
  });

  it('is bounded when a value is checked', () => {
    const loop = chain({ properties: { c: { $ref: '#/$defs/d0' } } });
    expect(messagesOf(loop, nested(60))).toEqual(TOO_COSTLY);
  });
});
