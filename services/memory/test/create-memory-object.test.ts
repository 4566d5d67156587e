import fc from 'fast-check';
import { isUuid, newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let typeId: string;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(async () => {
  token = memory.organization();
  typeId = (await token.type({ type: 'Product' })).id;
});

describe('201', () => {
  it('answers the whole object and its location', async () => {
    const { memoryObject, outcome, location } = await token.createObject({
      typeId,
      key: 'sku-1',
      content: '{ "price": 1.50 }',
    });
    const { id, createdAt, updatedAt, ...rest } = memoryObject!;
    expect(isUuid(id)).toBe(true);
    expect(outcome).toBe('CREATED');
    expect(location).toBe(`/api/memory/objects/${id}`);
    expect(updatedAt).toBe(createdAt);
    expect(rest).toEqual({
      typeId,
      type: 'Product',
      key: 'sku-1',
      content: '{ "price": 1.50 }',
      schemaVersion: 1,
      revision: 1,
    });
    expect(await token.getObject(id)).toEqual(memoryObject);
  });
  it.each([
    ['type', { type: 'pRODUCT' }],
    ['both', { type: 'product' }],
  ])('finds the type by name, regardless of case: %s', async (which, given) => {
    expect(await token.object(which === 'both' ? { ...given, typeId: typeId.toUpperCase() } : given)).toMatchObject({
      typeId,
      type: 'Product',
    });
  });
  it.each([
    ['one character', 'a'],
    ['512 characters', '👍'.repeat(512)],
    ['a space', ' '],
    ['punctuation', 'it\'s /odd?%_*"\\'],
  ])('accepts a key of %s', async (_, key) => {
    const { id } = await token.object({ typeId, key });
    expect((await token.listObjects({ key })).items).toMatchObject([{ id, key }]);
  });
  it('accepts a key as long as the setting allows, of characters that are two code units each', async () => {
    const longKeys = await startMemory({ MEMORY_KEY_MAX_LENGTH: '1024' });
    const caller = longKeys.organization();
    const key = '👍'.repeat(1_024);
    const { id } = await caller.object({ typeId: (await caller.type()).id, key });
    expect((await caller.listObjects({ key })).items).toMatchObject([{ id, key }]);
    await longKeys.stop();
  });
  it('accepts the same key in two types', async () => {
    const other = await token.type();
    await token.object({ typeId, key: 'same' });
    await expect(token.object({ typeId: other.id, key: 'same' })).resolves.toBeDefined();
  });
  it('lets a user create objects of a type with visibility organization', async () => {
    const user = memory.as(userOf(token.principal.organizationId));
    expect(await user.object({ typeId })).toMatchObject({ typeId });
  });
  it('returns the text of every content unchanged, in replies, reads and lists', async () => {
    const anything = await token.type({ jsonSchema: '{}' });
    const names = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '$ref', '$id', '_id', '$where', 'toJSON', 'constructor', '_bsontype', 'a.b'),
    );
    const contents = fc.dictionary(
      names.filter((name) => name !== '__proto__'),
      fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }),
      { maxKeys: 8 },
    );
    await fc.assert(
      fc.asyncProperty(contents, async (value) => {
        const content = JSON.stringify(value);
        const { id, ...created } = await token.object({ typeId: anything.id, content });
        const [listed] = (await token.listObjects({ typeId: anything.id, pageSize: 1 })).items;
        expect([created.content, (await token.getObject(id)).content, listed!.content]).toEqual([
          content,
          content,
          content,
        ]);
        expect(JSON.parse((await token.patchObject(id, { content: JSON.stringify({ was: value }) })).content)).toEqual({
          was: JSON.parse(content),
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe('400', () => {
  it.each([
    ['typeId', { typeId: undefined }],
    ['typeId', { typeId: '' }],
    ['typeId', { typeId: 'x' }],
    ['type', { type: 'other' }],
    ['key', { key: undefined }],
    ['key', { key: '' }],
    ['key', { key: 'a\u0000' }],
    ['key', { key: 'a\tb' }],
    ['key', { key: '\u0085' }],
    ['content', { content: undefined }],
    ['content', { content: 'null' }],
    ['content', { content: '[]' }],
    ['content', { content: '"a"' }],
    ['content', { content: '{"price":1}{' }],
  ])('names %s: %j', async (member, given) => {
    expect(await reasonAndPathOf(token.createObject({ typeId, ...given }))).toEqual(['INVALID_REQUEST', `/${member}`]);
    expect(await token.listObjects()).toEqual({ total: 0, items: [] });
  });
  it('names the member that is too long', async () => {
    expect(
      await reasonAndPathOf(
        token.createObject({ typeId, content: JSON.stringify({ price: 1, text: 'é'.repeat(131_072) }) }),
      ),
    ).toEqual(['INVALID_REQUEST', '/content']);
    expect(await reasonAndPathOf(token.createObject({ typeId, key: 'a'.repeat(513) }))).toEqual([
      'INVALID_REQUEST',
      '/key',
    ]);
  });
  it('names every violation of the schema by its path, and what the schema of the organization allows', async () => {
    const strict = {
      properties: {
        kind: { const: 'top-secret-1' },
        color: { enum: ['top-secret-2'] },
        size: { type: 'object', properties: { 'a/b': { type: 'number' } } },
      },
      required: ['name'],
    };
    const { id } = await token.type({ jsonSchema: JSON.stringify(strict) });
    const error = await errorOf(token.createObject({ typeId: id, content: '{"kind":1,"color":2,"size":{"a/b":"x"}}' }));
    expect(error.reason).toBe('INVALID_CONTENT');
    expect(error.details.map(({ path }) => path).toSorted()).toEqual([
      '/content/color',
      '/content/kind',
      '/content/name',
      '/content/size/a~1b',
    ]);
    expect(error.details.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['kind must be "top-secret-1"', 'color must be one of "top-secret-2"']),
    );
  });
});

describe('403', () => {
  it('never exceeds the tier limit, even with concurrent requests; a deletion makes room', async () => {
    const small = memory.organization({ limits: { memory_objects: 10 } });
    const types = [await small.type(), await small.type()];
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        small.createObject({ typeId: types[n % 2]!.id }).then(
          () => 'created',
          ({ reason, facts }) => `${reason} ${facts.limit}`,
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(10);
    expect(new Set(outcomes)).toEqual(new Set(['created', 'TIER_LIMIT memory_objects']));
    const { total, items } = await small.listObjects();
    expect(total).toBe(10);
    await small.deleteObject(items[0]!.id);
    await expect(small.createObject({ typeId: types[0]!.id })).resolves.toBeDefined();
    expect((await errorOf(small.createObject({ typeId: types[0]!.id }))).reason).toBe('TIER_LIMIT');
  });
});

describe('404', () => {
  it("is the same for an unknown, a hidden and another organization's type", async () => {
    const hidden = await token.type({ type: 'hidden', visibility: 'private' });
    const foreign = await memory.organization().type({ type: 'foreign' });
    const user = memory.as(userOf(token.principal.organizationId));
    const unknown = await errorOf(user.createObject({ typeId: newId() }));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const given of [
      { typeId: hidden.id },
      { typeId: foreign.id },
      { type: 'hidden' },
      { type: 'foreign' },
      { type: 'no such' },
    ]) {
      expect(await errorOf(user.createObject(given))).toEqual(unknown);
    }
  });
});

describe('409', () => {
  it('gives the id of the object that has the key', async () => {
    const { id } = await token.object({ typeId, key: 'k' });
    expect(await errorOf(token.createObject({ typeId, key: 'k' }))).toMatchObject({
      reason: 'ALREADY_EXISTS',
      facts: { id },
    });
    expect((await token.listObjects()).total).toBe(1);
  });
  it('creates one object when many requests with the same key arrive at once', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () =>
        token.createObject({ typeId, key: 'k' }).then(
          () => 'created',
          ({ reason }) => reason as string,
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual([...Array(19).fill('ALREADY_EXISTS'), 'created']);
    expect((await token.listObjects()).total).toBe(1);
  });
});
