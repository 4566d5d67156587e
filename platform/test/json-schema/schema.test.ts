import fc from 'fast-check';
import { Validator } from '@cfworker/json-schema';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { compile, messagesOf, conforms, rejection, many, object } from './schemas.ts';

describe('a value checked by its schema', () => {
  it('gets every violation, with JSON pointers that begin with its pointer in the request', () => {
    const schema = {
      type: 'object',
      required: ['a/b'],
      properties: { n: { type: 'integer', minimum: 3 }, list: { items: { type: 'string' } } },
      additionalProperties: false,
    };
    expect(
      compile(schema)
        .validate({ n: 2.5, list: [1, 'x', 2], 'q~': 1 }, '/content')
        .toSorted((x, y) => (x.path + x.message < y.path + y.message ? -1 : 1)),
    ).toEqual([
      { path: '/content/a~1b', message: 'is required' },
      { path: '/content/list/0', message: 'must be string' },
      { path: '/content/list/2', message: 'must be string' },
      { path: '/content/n', message: 'must be >= 3' },
      { path: '/content/n', message: 'must be integer' },
      { path: '/content/q~0', message: 'is not allowed' },
    ]);
  });

  it.each([1, 2, 30])('gets the path of each missing name, whatever it is: among %i', (count) => {
    const odd = ['', '__proto__', 'constructor', 'toString', 'a/b~c', `"'\`\${x}\\`, '\n\u2028', 'é😀', ' '];
    const value = object(count - 1, (i) => [`n${i}`, 0]);
    for (const name of odd) {
      const names = [...Object.keys(value).slice(0, 1), name, ...Object.keys(value).slice(1)];
      const path = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      expect(messagesOf({ required: names }, value)).toEqual([`${path} is required`]);
      const draft07 = { $schema: 'http://json-schema.org/draft-07/schema#', dependencies: { '': [''], 'x"': names } };
      for (const schema of [{ dependentRequired: { '': [''], 'x"': names } }, draft07]) {
        expect(messagesOf(schema, { ...value, 'x"': 1 })).toEqual([`${path} is required beside "x\\""`]);
        expect(conforms({ not: schema }, { ...value, 'x"': 1 })).toBe(true);
        expect(conforms(schema, value)).toBe(true);
      }
      const whole = { ...value, 'x"': 1, ...(JSON.parse(`{${JSON.stringify(name)}:0}`) as object) };
      if (name !== '__proto__')
        expect(messagesOf({ required: names, dependentRequired: { 'x"': names } }, whole)).toEqual([]);
    }
  });

  it('is checked for a member without a name as for any other', () => {
    const empty = { '': 'x' };
    expect(messagesOf({ properties: { '': { type: 'number' } } }, empty)).toEqual(['/ must be number']);
    expect(messagesOf({ patternProperties: { '': { type: 'number' } } }, empty)).toEqual(['/ must be number']);
    expect(messagesOf({ patternProperties: { '^$': false } }, empty)).toEqual(['/ is not allowed']);
    expect(messagesOf({ additionalProperties: false }, empty)).toEqual(['/ is not allowed']);
    expect(messagesOf({ unevaluatedProperties: false }, empty)).toEqual(['/ is not allowed']);
    expect(messagesOf({ properties: { '': true }, unevaluatedProperties: false }, empty)).toEqual([]);
    expect(messagesOf({ dependentSchemas: { '': { required: ['a'] } } }, empty)).toEqual(['/a is required']);
    expect(messagesOf({ propertyNames: { minLength: 1 } }, empty)).toContain(' has a member whose name is not allowed');
    expect(messagesOf({ $ref: '#/$defs/', $defs: { '': { type: 'string' } } }, 1)).toEqual([' must be string']);
  });

  it('gets at most 20 violations', () => {
    for (const schema of [
      { items: { type: 'string' } },
      { $ref: '#/$defs/l', $defs: { l: { items: { $ref: '#/$defs/s' } }, s: { type: 'string' } } },
    ]) {
      expect(compile(schema).validate(many(1_000, (i) => i))).toHaveLength(20);
    }
    expect(compile({ items: { type: 'string' } }).validate(many(50_000, () => 1))).toHaveLength(20);
  });

  it('gets messages without values from const or enum and without its own values', () => {
    const found = JSON.stringify(
      messagesOf(
        {
          properties: {
            a: { const: 'hush1' },
            b: { enum: ['hush2', { x: 'hush3' }] },
            c: { not: { const: 'hush4' } },
            d: { anyOf: [{ const: 'hush5' }] },
            e: { type: 'integer' },
            f: { uniqueItems: true },
          },
        },
        { a: 'mine1', b: { x: 'mine2' }, c: 'hush4', d: 'mine3', e: 'mine4', f: ['mine5', 'mine5'] },
      ),
    );
    for (const path of ['/a', '/b', '/c', '/d', '/e', '/f']) expect(found).toContain(`"${path} `);
    expect(found).not.toMatch(/hush|mine/);
  });

  it('is not changed: no defaults, no coercion', () => {
    const value = { n: '5' };
    expect(messagesOf({ properties: { n: { type: 'number' }, d: { default: 1 } } }, value)).toEqual([
      '/n must be number',
    ]);
    expect(value).toEqual({ n: '5' });
  });

  it.each([
    ['numbers as multiples of decimals', { multipleOf: 0.01 }, [19.99, 1e300], [19.995]],
    ['length in code points', { minLength: 2, maxLength: 3 }, ['😀😀', 'a😀b'], ['😀', '😀😀😀😀', 'abcd']],
    [
      'equal items whatever the order of members',
      { uniqueItems: true },
      [
        [1, '1', [1]],
        [{ a: 1 }, { a: 2 }],
      ],
      [
        [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
        [0, -0],
      ],
    ],
    [
      'const with members named like methods',
      { const: JSON.parse('{"valueOf":1,"toString":[2]}') },
      [JSON.parse('{"toString":[2],"valueOf":1}')],
      [{}, JSON.parse('{"valueOf":2,"toString":[2]}')],
    ],
    [
      'own members alone',
      { required: ['toString', 'constructor'] },
      [JSON.parse('{"toString":1,"constructor":1}')],
      [{}],
    ],
    [
      'formats',
      { properties: { m: { format: 'email' }, t: { format: 'date-time' }, x: { format: 'no-such' } } },
      [{ m: 'a@b.co', t: '2026-01-01T00:00:00Z', x: '?' }],
      [{ m: 'a' }, { t: 'now' }],
    ],
    [
      'each pattern by itself',
      { properties: { a: { pattern: '^a' }, b: { pattern: '^b' } } },
      [{ a: 'a', b: 'b' }],
      [{ a: 'b' }, { b: 'a' }],
    ],
    ['unicode classes in patterns', { pattern: '^\\p{L}+$' }, ['héé'], ['a1']],
    [
      'recursion',
      { properties: { kids: { items: { $ref: '#' } }, n: { type: 'number' } } },
      [{ kids: [{ kids: [], n: 1 }] }],
      [{ kids: [{ kids: [{ n: 'x' }] }] }],
    ],
    [
      'references with odd names',
      { $defs: { 'a/b~c%d é"': { type: 'string' } }, items: { $ref: '#/$defs/a~1b~0c%25d%20%C3%A9%22' } },
      [['x']],
      [[1]],
    ],
    ['anchors', { $defs: { a: { $anchor: 'here', type: 'string' } }, items: { $ref: '#here' } }, [['x']], [[1]]],
    ['$id and $ref inside a const', { const: { $id: 'x', $ref: 'http://h/' } }, [{ $id: 'x', $ref: 'http://h/' }], [1]],
    [
      '2020-12: prefixItems, unevaluatedProperties',
      {
        allOf: [{ $ref: '#/$defs/a' }],
        $defs: { a: { properties: { a: { prefixItems: [{ type: 'string' }] } } } },
        unevaluatedProperties: false,
      },
      [{ a: ['x', 1] }],
      [{ b: 1 }, { a: [1] }],
    ],
    [
      'unevaluatedProperties, of names that all objects inherit',
      { anyOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      [{ a: 1 }],
      [{ constructor: 1 }, { toString: 1 }],
    ],
    [
      'draft-07: items as a list, dependencies, siblings of $ref ignored',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        items: [{ $ref: '#/definitions/s', maxLength: 1 }],
        additionalItems: { dependencies: { a: ['b'], c: { required: ['d'] } } },
        definitions: { s: { type: 'string' } },
      },
      [['long', { a: 1, b: 1 }]],
      [[1], ['x', { a: 1 }], ['x', { c: 1 }]],
    ],
    [
      'unknown keywords as notes',
      { type: 'object', id: 'x', nullable: true, $async: true, 'x-ui': { $ref: 'http://h/' }, 'x-cost': 'mine' },
      [{}],
      [null],
    ],
  ])('is checked for %s', (_name, schema, valid, invalid) => {
    for (const value of valid) expect([value, messagesOf(schema, value)]).toEqual([value, []]);
    for (const value of invalid) expect([value, conforms(schema, value)]).toEqual([value, false]);
  });

  it('is refused for an empty list among lists that must contain something', () => {
    const schema = { items: { contains: { type: 'null' } } };
    expect(conforms(schema, [[null], []])).toBe(false);
    expect(messagesOf(schema, [[null], [], [null]])).toEqual(['/1 must contain at least 1 valid item(s)']);
  });

  it('conforms exactly when a validator by other authors says so', () => {
    const leaf = fc.constantFrom<object | boolean>(
      true,
      false,
      {},
      { type: 'string' },
      { type: ['number', 'null'] },
      { enum: [1, 'a', null] },
      { const: [1] },
      { minimum: 1 },
      { maxLength: 1 },
      { pattern: '^a' },
      { required: ['a'] },
      { uniqueItems: true },
    );
    const reference = fc.constant({ $ref: '#/$defs/x' });
    const name = fc.constantFrom('a', 'b');
    type Schema = fc.Arbitrary<object | boolean>;
    const anyOf = (first: Schema, keywords: object[]): Schema =>
      fc.oneof(
        { maxDepth: 3 },
        first,
        ...keywords.map((members) => fc.record(members as Record<string, fc.Arbitrary<object>>)),
      );
    // The other validator lets unevaluatedProperties in `then` see what `if` evaluates, so there is none in these.
    const plain = (s: Schema): object[] => {
      const list = fc.array(s, { minLength: 1, maxLength: 3 });
      return [
        { items: s },
        { additionalProperties: s },
        { allOf: list },
        { anyOf: list },
        { oneOf: list },
        { not: s },
        { contains: s },
        { propertyNames: s },
        {
          properties: fc.dictionary(name, s),
          patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), s),
          additionalProperties: s,
        },
        { prefixItems: list, items: s },
      ];
    };
    const schemas = fc.letrec<{ schema: object | boolean; plain: object | boolean }>((tie) => {
      const [s, p] = [tie('schema'), tie('plain')];
      const list = fc.array(s, { minLength: 1, maxLength: 3 });
      const conditions = [
        { if: p, then: p, else: p },
        { dependentSchemas: fc.dictionary(name, p) },
        { if: p, else: p, unevaluatedProperties: s },
        { if: p, then: p, unevaluatedItems: s },
        { if: p, unevaluatedItems: s },
        { dependentSchemas: fc.dictionary(name, p), unevaluatedProperties: s },
      ];
      const unevaluated = [
        { allOf: list, unevaluatedProperties: s },
        { anyOf: list, prefixItems: list, unevaluatedItems: s },
        { oneOf: list, properties: fc.dictionary(name, s), unevaluatedProperties: s },
      ];
      return {
        schema: anyOf(fc.oneof(leaf, reference), [...plain(s), ...conditions, ...unevaluated]),
        plain: anyOf(leaf, plain(p)),
      };
    }).schema;
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>(null, 0, 1, 'a', 'ab', ''),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'ab'), tie('value'), { noNullPrototype: true }),
      ),
    })).value;
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(schemas, schemas, fc.array(values, { minLength: 5, maxLength: 5 }), (schema, x, samples) => {
        const whole = {
          allOf: [schema],
          $defs: { x: JSON.parse(JSON.stringify(x).replaceAll('#/$defs/x', '#/$defs/y')), y: { type: 'object' } },
        };
        // Only ajv cannot check these two together.
        fc.pre(rejection(whole) === 'accepted' || !/contains and unevaluatedItems/.test(rejection(whole)));
        const reference = new Validator(whole as object, '2020-12');
        const ours = compile(whole);
        for (const sample of samples) {
          const verdict = reference.validate(sample).valid;
          verdicts[`${verdict}`]++;
          expect(ours.validate(sample).length === 0).toBe(verdict);
        }
      }),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 300) },
    );
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(100);
  });
});

describe('compiled schemas', () => {
  it('are independent of each other', () => {
    const a = compile({ $id: 'https://x.test/s', const: 'a' });
    const b = compile({ $id: 'https://x.test/s', const: 'b' });
    expect([a.validate('a'), b.validate('b')]).toEqual([[], []]);
    expect(rejection({ $ref: 'https://x.test/s' })).toMatch(/leads out of the schema/);
  });

  it('cannot pollute a prototype', () => {
    const schema =
      '{"default":{"__proto__":{"polluted":1}},"properties":{"constructor":{"default":{"prototype":{"polluted":1}}}}}';
    compileSchema(schema).validate(JSON.parse('{"__proto__":{"polluted":1}}'));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
