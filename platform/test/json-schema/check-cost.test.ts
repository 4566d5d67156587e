import { compile, conforms, many, messagesOf, nested, object, TOO_COSTLY } from './schemas.ts';

const branches = (levels: number): object =>
  levels === 0 ? { patternProperties: { a: true } } : { anyOf: [branches(levels - 1)] };

/** Definitions in a row, each with a reference to the one before. */
const chained = (length: number, first: object): object => ({
  $defs: object(length, (i) => [
    `r${i}`,
    { allOf: [{ anyOf: [{ properties: { a: true } }] }, i === 0 ? first : { $ref: `#/$defs/r${i - 1}` }] },
  ]),
});
const lastOf = (length: number) => ({ $ref: `#/$defs/r${length - 1}`, unevaluatedProperties: false });

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
    [
      'all members of a value, which many references evaluate',
      {
        ...chained(100, { patternProperties: { '': true } }),
        $ref: '#/$defs/r99',
        properties: { other: { unevaluatedProperties: false } },
      },
      object(16_000, (i) => [`k${i}`, 0]),
    ],
    [
      'names that many references evaluate, for each item',
      {
        ...chained(40, { anyOf: [{ properties: object(60, (i) => [`p${i}`, true]) }] }),
        items: lastOf(40),
      },
      many(1_000, () => ({})),
    ],
    [
      'items of a member with a long name',
      { additionalProperties: { items: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'number' } } },
      object(24, (i) => [`${'~'.repeat(300_000)}${i}`, [0]]),
    ],
    ['a pattern of many choices on a long text', { pattern: '^(?:a+b?)+$' }, `${'a'.repeat(250_000)}!`],
    [
      'many branches over a long list',
      { items: { anyOf: [...many(240, () => ({ type: 'null' })), { type: 'number' }] } },
      many(100_000, () => 1),
    ],
  ])('%s', (_name, schema, value) => expect(messagesOf(schema, value)).toEqual(TOO_COSTLY));

  it('and allows many items in a member with a long name', () => {
    const schema = { $defs: { n: { type: 'number' } }, additionalProperties: { items: { $ref: '#/$defs/n' } } };
    const name = '~'.repeat(120_000);
    expect(messagesOf(schema, { [name]: many(60_000, () => 0) })).toEqual([]);
    expect(messagesOf(schema, { '~/': [0, 'x'] })).toEqual(['/~0~1/1 must be number']);
  });

  it('and allows a list of many kinds that extend one base', () => {
    const base = { properties: object(80, (i) => [`b${i}`, { type: 'string' }]), required: ['b0'] };
    const kindOf = (i: number) => ({
      allOf: [{ $ref: '#/$defs/base' }],
      properties: { kind: { const: `k${i}` }, ...object(3, (j) => [`k${i}_${j}`, true]) },
      required: ['kind'],
      unevaluatedProperties: false,
    });
    const schema = {
      $defs: { base, ...object(20, (i) => [`k${i}`, kindOf(i)]) },
      properties: { rows: { items: { oneOf: many(20, (i) => ({ $ref: `#/$defs/k${i}` })) } } },
      unevaluatedProperties: false,
    };
    const rows = many(100, (i) => ({ kind: `k${i % 20}`, ...object(6, (j) => [`b${j}`, 'text']) }));
    expect(messagesOf(schema, { rows })).toEqual([]);
    expect(conforms(schema, { rows: [{ ...rows[0], k1_0: 1 }] })).toBe(false);
  });

  it('and nothing is collected for a member that is only named like a keyword', () => {
    const named = (name: string) => ({
      ...chained(40, { anyOf: [{ properties: object(200, (i) => [`p${i}`, true]) }] }),
      properties: { [name]: { const: name } },
      $ref: '#/$defs/r39',
    });
    expect(compile(named('unevaluatedProperties')).bytes).toBeLessThan(1.1 * compile(named('anotherMember')).bytes);
  });

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
