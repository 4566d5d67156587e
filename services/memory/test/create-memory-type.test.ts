import { isUuid } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, SCHEMA, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

describe('201', () => {
  it('answers the whole type with its defaults, and its location', async () => {
    const { memoryType, outcome, location } = await token.createType({
      type: 'Invoice',
      jsonSchema: JSON.stringify(SCHEMA),
    });
    const { id, createdAt, updatedAt, ...rest } = memoryType!;
    expect(isUuid(id)).toBe(true);
    expect(outcome).toBe('CREATED');
    expect(location).toBe(`/api/memory/types/${id}`);
    expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(60_000);
    expect(updatedAt).toBe(createdAt);
    expect(rest).toEqual({
      type: 'Invoice',
      displayName: 'Invoice',
      description: '',
      visibility: 'organization',
      version: 1,
      jsonSchema: JSON.stringify(SCHEMA),
      idSchema: undefined,
      embeddingSchema: undefined,
      groupNames: [],
      relations: [],
      state: 'active',
    });
  });
  it('stores every field, and the text of the schema unchanged, across a restart', async () => {
    const given = {
      type: 'a.b_c-1',
      displayName: 'Ünïcode 👩‍🔬'.replaceAll('\u200d', ''),
      description: 'two\nlines',
      visibility: 'private',
      jsonSchema: '{ "type" : "object" , "title":"é" }',
    };
    const { id } = await token.type(given);
    await memory.restart();
    expect(await token.getType(id)).toMatchObject({ id, ...given });
  });
  it('accepts unsupported members at their defaults', async () => {
    expect(
      await token.type({ idSchema: undefined, embeddingSchema: undefined, groupNames: [], relations: [] }),
    ).toMatchObject({ groupNames: [], relations: [] });
  });
  it('accepts the same name in two organizations', async () => {
    await token.type({ type: 'Note' });
    await expect(memory.organization().type({ type: 'Note' })).resolves.toMatchObject({ type: 'Note' });
  });
});

describe('400', () => {
  it.each([
    ['type', { type: undefined }],
    ['type', { type: '' }],
    ['type', { type: '1a' }],
    ['type', { type: 'a b' }],
    ['type', { type: 'a'.repeat(65) }],
    ['type', { type: 'ä' }],
    ['displayName', { displayName: '' }],
    ['displayName', { displayName: ' ' }],
    ['displayName', { displayName: 'a'.repeat(101) }],
    ['displayName', { displayName: 'a\nb' }],
    ['visibility', { visibility: 'public' }],
    ['visibility', { visibility: '' }],
    ['jsonSchema', { jsonSchema: undefined }],
    ['jsonSchema', { jsonSchema: 'null' }],
    ['jsonSchema', { jsonSchema: '[]' }],
    ['jsonSchema', { jsonSchema: 'true' }],
    ['jsonSchema', { jsonSchema: '{' }],
  ])('names %s: %j', async (member, given) => {
    expect(await reasonAndPathOf(token.createType(given))).toEqual(['INVALID_REQUEST', `/${member}`]);
  });
  it('names the member that is too long', async () => {
    expect(
      await reasonAndPathOf(token.createType({ jsonSchema: JSON.stringify({ description: 'a'.repeat(65_536) }) })),
    ).toEqual(['INVALID_REQUEST', '/jsonSchema']);
    expect(await reasonAndPathOf(token.createType({ description: 'a'.repeat(2_001) }))).toEqual([
      'INVALID_REQUEST',
      '/description',
    ]);
    await expect(token.createType({ description: '👍'.repeat(2_000) })).resolves.toBeDefined();
  });
  it.each([
    ['a wrong keyword', { type: 'nonsense' }],
    ['a reference to another document', { $ref: 'https://example.org/x' }],
    ['a circular reference', { $ref: '#' }],
    ['a type that no object has', { type: 'string' }],
    ['a misspelled keyword', { propertys: {} }],
    ['more than 32 levels', JSON.parse(`${'{"not":'.repeat(33)}{}${'}'.repeat(33)}`)],
  ])('rejects an invalid schema: %s', async (_, schema) => {
    const { reason, details } = await errorOf(token.createType({ jsonSchema: JSON.stringify(schema) }));
    expect(reason).toBe('INVALID_SCHEMA');
    expect(details[0]!.path).toMatch(/^\/jsonSchema/);
  });
});

describe('one mistake in a schema is one violation, at its place', () => {
  const DRAFTS = [undefined, 'http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft/2020-12/schema'];
  const MISTAKES: [path: string, schema: object][] = [
    ['/type', { type: 'nonsense' }],
    ['/type', { type: 5 }],
    ['/type', { type: ['object', 'object'] }],
    ['/type', { type: 'string' }],
    ['/const', { const: 5 }],
    ['/enum', { type: 'object', enum: ['a', null, []] }],
    ['/not', { not: {} }],
    ['/not', { not: true }],
    ['/properties/a~1b', { required: ['x', 'a/b'], properties: { 'a/b': false } }],
    ['/required', { required: 'name' }],
    ['/required/1', { required: ['name', 5] }],
    ['/properties', { properties: [] }],
    ['/properties/a', { properties: { a: 'string' } }],
    ['/properties/a/type', { properties: { a: { type: 'strin' } } }],
    ['/properties/a/type', { properties: { a: { type: null } } }],
    ['/properties/a/enum', { properties: { a: { enum: 'red' } } }],
    ['/properties/a/minLength', { properties: { a: { minLength: -1 } } }],
    ['/properties/a/minLength', { properties: { a: { minLength: '1' } } }],
    ['/properties/a/pattern', { properties: { a: { pattern: '(' } } }],
    ['/properties/a/format', { properties: { a: { format: 'emial' } } }],
    ['/properties/a/requred', { properties: { a: { requred: [] } } }],
    ['/properties/a/items', { properties: { a: { items: 'string' } } }],
    ['/properties/a/$ref', { properties: { a: { $ref: '#/$defs/none' } } }],
    ['/properties/a/$ref', { properties: { a: { $ref: 5 } } }],
    ['/properties/a/anyOf', { properties: { a: { anyOf: [] } } }],
    ['/properties/a/anyOf/1/type', { properties: { a: { anyOf: [{}, { type: 'nul' }] } } }],
    ['/properties/a/not/type', { properties: { a: { not: { type: 'strin' } } } }],
    ['/additionalProperties', { additionalProperties: 'no' }],
    ['/maxProperties', { maxProperties: 1.5 }],
  ];
  it.each(MISTAKES)('%s: %j', async (path, mistake) => {
    for (const $schema of DRAFTS) {
      const schema = { ...($schema && { $schema }), type: 'object', ...mistake };
      const { reason, details } = await errorOf(token.createType({ jsonSchema: JSON.stringify(schema) }));
      expect([reason, $schema, details.map((each) => each.path)]).toEqual([
        'INVALID_SCHEMA',
        $schema,
        [`/jsonSchema${path}`],
      ]);
    }
  });
});

describe('403', () => {
  it('never exceeds the tier limit, even with concurrent requests', async () => {
    const small = memory.organization({ limits: { memory_types: 5 } });
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, () =>
        small.createType().then(
          () => 'created',
          ({ reason, facts }) => `${reason} ${facts.limit}`,
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(5);
    expect(new Set(outcomes)).toEqual(new Set(['created', 'TIER_LIMIT memory_types']));
    const [first] = await small.listTypes();
    await small.deleteType(first!.id);
    await expect(small.createType()).resolves.toBeDefined();
  });
  it('rejects a schema with which all schemas of the organization would exceed their limit of bytes', async () => {
    const bounded = await startMemory({ MEMORY_SCHEMAS_MAX_BYTES: '65536' });
    const one = bounded.organization();
    const large = JSON.stringify({ description: 'a'.repeat(30_000) });
    const first = await one.type({ jsonSchema: large });
    await one.type({ jsonSchema: large });
    expect(await errorOf(one.createType({ jsonSchema: large }))).toMatchObject({
      reason: 'TIER_LIMIT',
      facts: { limit: 'memory_schema_bytes' },
    });
    await one.putType(first.id, { jsonSchema: '{}' });
    await expect(one.createType({ jsonSchema: large })).resolves.toBeDefined();
    await bounded.stop();
  });
});

describe('409', () => {
  it('gives the id of the type that has the name, regardless of case', async () => {
    const { id } = await token.type({ type: 'Invoice' });
    expect(await errorOf(token.createType({ type: 'iNVOICE' }))).toMatchObject({
      reason: 'ALREADY_EXISTS',
      facts: { id },
    });
  });
  it('does not give the id of a type that the principal may not see', async () => {
    await token.type({ type: 'Secret', visibility: 'private' });
    const user = memory.as(userOf(token.principal.organizationId));
    expect(await errorOf(user.createType({ type: 'secret' }))).toMatchObject({ reason: 'ALREADY_EXISTS', facts: {} });
  });
  it('creates one type when many requests with the same name arrive at once', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        token.createType({ type: 'Same' }).then(
          () => 'created',
          ({ reason }) => reason as string,
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual([...Array(9).fill('ALREADY_EXISTS'), 'created']);
    expect(await token.listTypes()).toHaveLength(1);
  });
});

it('many costly schemas of one organization do not delay other organizations', async () => {
  const neighbour = memory.organization();
  await neighbour.type();
  let answered = 0;
  const costly = (i: number) =>
    JSON.stringify({
      properties: Object.fromEntries(Array.from({ length: 400 }, (_, j) => [`p${i}_${j}`, { type: 'string' }])),
    });
  const flood = Array.from({ length: 16 }, async (_, i) => {
    await token.type({ jsonSchema: costly(i) });
    answered += 1;
  });
  const settled = Promise.allSettled(flood);
  expect(await neighbour.listTypes()).toHaveLength(1);
  expect(answered).toBeLessThan(8);
  expect(await neighbour.object({ type: (await neighbour.listTypes())[0]!.type })).toMatchObject({ revision: 1 });
  expect(answered).toBeLessThan(16);
  // On a busy machine some of them end by their deadline: no matter, the neighbour was answered.
  await settled;
});
