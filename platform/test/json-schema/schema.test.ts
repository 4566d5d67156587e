import fc from 'fast-check';
import { Validator } from '@cfworker/json-schema';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { compile, messagesOf, conforms, TOO_COSTLY, rejection, many, object, nested } from './schemas.ts';

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
      { numRuns: 1_000 },
    );
    expect(Math.min(verdicts.true, verdicts.false)).toBeGreaterThan(100);
  });
});

const branches = (levels: number): object =>
  levels === 0 ? { patternProperties: { a: true } } : { anyOf: [branches(levels - 1)] };

describe('the cost of a check is limited', () => {
  it.each<[string, unknown, unknown]>([
    [
      'recursion that doubles at each level of the value',
      { allOf: [{ properties: { c: { $ref: '#' } } }, { properties: { c: { $ref: '#' } } }] },
      nested(60),
    ],
    ['a pattern with a long program on a long text', { pattern: '(?:a?){300}a{300}' }, 'a'.repeat(250_000)],
    ['many formats on a long text', { allOf: many(200, () => ({ format: 'uri' })) }, `http://x/${'a'.repeat(200_000)}`],
    [
      'many scans of a long list',
      { allOf: many(200, () => ({ contains: { type: 'null' }, minContains: 0 })) },
      many(100_000, () => 1),
    ],
    [
      'many comparisons of items',
      { items: { allOf: many(200, () => ({ uniqueItems: true })) } },
      many(20_000, (i) => [i]),
    ],
    [
      'many comparisons of objects',
      { items: { allOf: many(200, (i) => ({ not: { const: { i } } })) } },
      many(20_000, (i) => ({ i: -1 - i })),
    ],
    [
      'many counts of members',
      { items: { allOf: many(200, () => ({ minProperties: 1 })) } },
      many(20_000, (i) => ({ i })),
    ],
    [
      'many patterns over many names',
      { patternProperties: object(200, (i) => [`^p${i}`, { type: 'string' }]) },
      object(20_000, (i) => [`q${i}`, i]),
    ],
    [
      'names that are not evaluated',
      {
        anyOf: many(30, (i) => ({ patternProperties: { [`^q${i}`]: {} } })),
        unevaluatedProperties: { type: 'number' },
      },
      object(20_000, (i) => [`q${i}`, i]),
    ],
    [
      'members that nested branches evaluate',
      { ...branches(14), unevaluatedProperties: false },
      object(12_000, (i) => [`a${i}`, 1]),
    ],
    ['a pattern of many choices on a long text', { pattern: '^(a+)+$' }, `${'a'.repeat(250_000)}!`],
    [
      'many branches over a long list',
      { items: { anyOf: [...many(240, () => ({ type: 'null' })), { type: 'number' }] } },
      many(100_000, () => 1),
    ],
  ])('%s', (_name, schema, value) => expect(messagesOf(schema, value)).toEqual(TOO_COSTLY));

  it('and allows the largest content with a simple schema', () => {
    expect(
      messagesOf(
        { items: { type: 'number', minimum: 0 } },
        many(130_000, () => 1),
      ),
    ).toEqual([]);
    expect(
      messagesOf(
        { uniqueItems: true },
        many(20_000, (i) => ({ i })),
      ),
    ).toEqual([]);
    expect(
      messagesOf(
        { items: { pattern: '^[a-z0-9-]{36}$' } },
        many(3_000, () => 'a'.repeat(36)),
      ),
    ).toEqual([]);
    expect(messagesOf({ pattern: '^(a+)+$' }, `${'a'.repeat(100_000)}!`)).toEqual([' must match pattern "^(a+)+$"']);
    expect(
      messagesOf(
        { items: { enum: many(1_000, (i) => `v${i}`) } },
        many(20_000, () => 'v999'),
      ),
    ).toEqual([]);
  });

  it('and allows 256 KiB of ordinary content with 200 properties and a list of thousands', () => {
    const row = {
      type: 'object',
      required: ['id', 'name', 'at', 'amount', 'tags'],
      additionalProperties: false,
      properties: {
        id: { type: 'string', pattern: '^[a-z0-9-]{36}$' },
        name: { type: 'string', minLength: 1, maxLength: 80 },
        at: { type: 'string', format: 'date-time' },
        amount: { type: 'number', minimum: 0 },
        tags: { type: 'array', uniqueItems: true, items: { enum: ['a', 'b', 'c'] } },
      },
    };
    const schema = {
      type: 'object',
      required: many(195, (i) => `p${i}`),
      properties: {
        ...object(199, (i) => [`p${i}`, { type: 'string', maxLength: 200 }]),
        rows: { type: 'array', items: row },
      },
      additionalProperties: false,
    };
    const content = {
      ...object(199, (i) => [`p${i}`, `text ${i}`]),
      rows: many(2_000, (i) => ({
        id: `0192f3a4-0000-7000-8000-${100_000_000_000 + i}`,
        name: `row ${i}`,
        at: '2026-01-01T00:00:00Z',
        amount: i,
        tags: ['a', 'c'],
      })),
    };
    expect(JSON.stringify(content).length).toBeGreaterThan(240_000);
    expect(messagesOf(schema, content)).toEqual([]);
    content.rows[1_999]!.amount = -1;
    expect(messagesOf(schema, content)).toEqual(['/rows/1999/amount must be >= 0']);
  });

  it('and allows a schema of 450 properties', () => {
    const schema = {
      properties: object(450, (i) => [`p${i}`, { type: 'string', maxLength: 9 }]),
      required: many(450, (i) => `p${i}`),
      additionalProperties: false,
    };
    expect(
      messagesOf(
        schema,
        object(450, (i) => [`p${i}`, 'x']),
      ),
    ).toEqual([]);
    expect(messagesOf(schema, { ...object(449, (i) => [`p${i}`, i === 9 ? 1 : 'x']), q: 1 }).toSorted()).toEqual([
      '/p449 is required',
      '/p9 must be string',
      '/q is not allowed',
    ]);
  });
});

describe('compiled schemas', () => {
  it('are independent of each other', () => {
    const a = compile({ $id: 'https://x.test/s', const: 'a' });
    const b = compile({ $id: 'https://x.test/s', const: 'b' });
    expect([a.validate('a'), b.validate('b')]).toEqual([[], []]);
    expect(rejection({ $ref: 'https://x.test/s' })).toMatch(/can only lead into the same schema/);
  });

  it('cannot pollute a prototype', () => {
    const schema =
      '{"default":{"__proto__":{"polluted":1}},"properties":{"constructor":{"default":{"prototype":{"polluted":1}}}}}';
    compileSchema(schema).validate(JSON.parse('{"__proto__":{"polluted":1}}'));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
