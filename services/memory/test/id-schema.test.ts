import { newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, startMemory, type Caller, type Memory } from './fixture.ts';

const idSchema = { properties: ['/country', '/address/zip'], separator: '-' };
const jsonSchema = '{"type":"object"}';
const DE = '{"country":"DE","address":{"zip":10115}}';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

describe('an idSchema derives the key from the content', () => {
  it('of a new object, and of one that is sent with its key', async () => {
    const { id: typeId } = await token.type({ jsonSchema, idSchema });
    const { key, id } = await token.object({ typeId, key: undefined, content: DE });
    expect(key).toBe('DE-10115');
    expect(await errorOf(token.object({ typeId, key, content: DE }))).toMatchObject({
      reason: 'ALREADY_EXISTS',
      facts: { id },
    });
    expect(
      await token.object({ typeId, key: 'FR-true', content: '{"country":"FR","address":{"zip":true}}' }),
    ).toMatchObject({ key: 'FR-true' });
  });
  it.each([
    ['another key', { key: 'x', content: DE }, ['INVALID_REQUEST', '/key']],
    [
      'no value at a path',
      { key: undefined, content: '{"country":"DE"}' },
      ['INVALID_CONTENT', '/content/address/zip'],
    ],
    [
      'an object at a path',
      { key: undefined, content: '{"country":{},"address":{"zip":1}}' },
      ['INVALID_CONTENT', '/content/country'],
    ],
    [
      'null at a path',
      { key: undefined, content: '{"country":null,"address":{"zip":1}}' },
      ['INVALID_CONTENT', '/content/country'],
    ],
    [
      'an inherited member',
      { key: undefined, content: '{"country":"a","address":"b"}' },
      ['INVALID_CONTENT', '/content/address/zip'],
    ],
    [
      'a key that is too long',
      { key: undefined, content: JSON.stringify({ country: 'x'.repeat(512), address: { zip: 1 } }) },
      ['INVALID_REQUEST', '/key'],
    ],
    [
      'a control character',
      { key: undefined, content: JSON.stringify({ country: '\t', address: { zip: 1 } }) },
      ['INVALID_REQUEST', '/key'],
    ],
  ])('and refuses %s', async (_, given, expected) => {
    const { id: typeId } = await token.type({ jsonSchema, idSchema });
    expect(await reasonAndPathOf(token.createObject({ typeId, ...given }))).toEqual(expected);
    expect((await token.listObjects()).total).toBe(0);
  });
  it('and a content that would derive another key is refused: 400 key_changed', async () => {
    const { id: typeId } = await token.type({ jsonSchema, idSchema });
    const { id } = await token.object({ typeId, key: undefined, content: DE });
    const { reason, details } = await errorOf(
      token.patchObject(id, { content: '{"country":"DE","address":{"zip":"10116"}}' }),
    );
    expect([reason, details.map(({ path }) => path)]).toEqual([
      'KEY_CHANGED',
      ['/content/country', '/content/address/zip'],
    ]);
    // The text 10115 derives the same key as the number, but is another value.
    const text = DE.replace('10115', '"10115"');
    expect(await errorOf(token.patchObject(id, { content: text }))).toMatchObject({ reason: 'KEY_CHANGED' });
    await token.patchObject(id, { content: '{"country":"DE","address":{"zip":10115.0},"more":1}' });
    expect(await token.getObject(id)).toMatchObject({ revision: 2, key: 'DE-10115' });
  });
  it.each([
    ['no path', { properties: [] }, 'properties'],
    ['a path without a slash', { properties: ['a'] }, 'properties/0'],
    ['an empty path', { properties: [''] }, 'properties/0'],
    ['a wrong escape', { properties: ['/a~2'] }, 'properties/0'],
    ['a path twice', { properties: ['/a', '/a'] }, 'properties/1'],
    ['17 paths', { properties: Array.from({ length: 17 }, (_, i) => `/${i}`) }, 'properties'],
    ['a long separator', { properties: ['/a'], separator: '-'.repeat(17) }, 'separator'],
    ['a line feed as separator', { properties: ['/a'], separator: '\n' }, 'separator'],
    ['nothing between two values', { properties: ['/a', '/b'], separator: '' }, 'separator'],
  ])('is refused with %s', async (_, wrong, at) => {
    expect(await reasonAndPathOf(token.createType({ idSchema: wrong }))).toEqual([
      'INVALID_REQUEST',
      `/idSchema/${at}`,
    ]);
  });
  it('raises the version when it changes, and null clears it', async () => {
    const { id } = await token.type({ jsonSchema, idSchema: { properties: ['/a'] } });
    expect(await token.getType(id)).toMatchObject({ version: 1, idSchema: { properties: ['/a'], separator: ':' } });
    expect(await token.putType(id, { idSchema: { properties: ['/a'], separator: ':' } })).toMatchObject({ version: 1 });
    expect(await token.putType(id, { description: 'kept' })).toMatchObject({ idSchema: { properties: ['/a'] } });
    expect(await token.putType(id, { idSchema })).toMatchObject({ version: 2, idSchema });
    expect(await token.putType(id, { updateMask: ['idSchema'] })).toMatchObject({ version: 3, idSchema: undefined });
    await token.object({ typeId: id, key: 'free', content: '{}' });
  });
});

describe('an embeddingSchema is checked and kept', () => {
  const embeddingSchema = { fields: ['/title', '/text'], model: 'm', dimensions: 768, metric: 'cosine' };
  it('and raises the version when it changes, also while the type has objects', async () => {
    const { id } = await token.type({ embeddingSchema: { fields: ['/text'] } });
    await token.object({ typeId: id });
    expect(await token.putType(id, { embeddingSchema })).toMatchObject({ version: 2, embeddingSchema });
    expect(await token.putType(id, { embeddingSchema })).toMatchObject({ version: 2 });
    expect(await token.object({ typeId: id })).toMatchObject({ schemaVersion: 2 });
    expect(await token.putType(id, { updateMask: ['embeddingSchema'] })).toMatchObject({
      version: 3,
      embeddingSchema: undefined,
    });
  });
  it.each([
    ['fields', { fields: [] }],
    ['fields/0', { fields: ['text'] }],
    ['model', { fields: ['/a'], model: '' }],
    ['dimensions', { fields: ['/a'], dimensions: 0 }],
    ['metric', { fields: ['/a'], metric: 'manhattan' }],
  ])('refused at %s: %j', async (at, wrong) => {
    expect(await reasonAndPathOf(token.createType({ embeddingSchema: wrong }))).toEqual([
      'INVALID_REQUEST',
      `/embeddingSchema/${at}`,
    ]);
  });
});

describe('upsert', () => {
  it('creates an object, and then replaces its content under the same id', async () => {
    const { id: typeId } = await token.type();
    const first = await token.createObject({ typeId, key: 'k', content: '{"price":1}', upsert: true });
    expect([first.outcome, first.location]).toEqual(['CREATED', `/api/memory/objects/${first.memoryObject!.id}`]);
    const second = await token.createObject({ typeId, key: 'k', content: '{"price":2}', upsert: true });
    expect([second.outcome, second.location]).toEqual(['REPLACED', '']);
    expect(second.memoryObject).toEqual({
      ...first.memoryObject,
      content: '{"price":2}',
      revision: 2,
      updatedAt: second.memoryObject!.updatedAt,
    });
    expect(await token.getObject(first.memoryObject!.id)).toEqual(second.memoryObject);
    expect((await token.listObjects()).total).toBe(1);
  });
  it('by a derived key', async () => {
    const { id: typeId } = await token.type({ jsonSchema, idSchema });
    const { id } = await token.object({ typeId, key: undefined, content: DE, upsert: true });
    const again = { typeId, key: undefined, content: DE.replace('{', '{"x":1,'), upsert: true };
    expect(await token.createObject(again)).toMatchObject({
      outcome: 'REPLACED',
      memoryObject: { id, revision: 2 },
    });
  });
  it('refuses what a create refuses, and changes nothing', async () => {
    const { id: typeId } = await token.type();
    const { id } = await token.object({ typeId, key: 'k' });
    expect(await reasonAndPathOf(token.createObject({ typeId, key: 'k', content: '{}', upsert: true }))).toEqual([
      'INVALID_CONTENT',
      '/content/price',
    ]);
    expect(await token.getObject(id)).toMatchObject({ revision: 1 });
  });
  it('of one key by 32 clients leaves one object, and each was one write', async () => {
    const { id: typeId } = await token.type();
    const key = newId();
    const results = await Promise.all(
      Array.from({ length: 32 }, (_, n) =>
        token.createObject({ typeId, key, content: JSON.stringify({ price: n }), upsert: true }),
      ),
    );
    expect(results.filter(({ outcome }) => outcome === 'CREATED')).toHaveLength(1);
    expect(results.map(({ memoryObject }) => memoryObject!.revision).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 32 }, (_, n) => n + 1),
    );
    expect((await token.listObjects()).total).toBe(1);
  });
  it('counts the bytes of what is stored, within the tier', async () => {
    const small = memory.organization({ limits: { memory_objects: 1, memory_bytes: 100_000 } });
    const { id: typeId } = await small.type({ jsonSchema: '{}' });
    const put = (size: number) =>
      small.createObject({ typeId, key: 'k', content: JSON.stringify({ text: 'x'.repeat(size) }), upsert: true });
    await put(10_000);
    expect(await errorOf(put(70_000))).toMatchObject({ reason: 'TIER_LIMIT', facts: { limit: 'memory_bytes' } });
    await put(50_000);
    expect((await put(10)).memoryObject).toMatchObject({ revision: 3 });
    expect(await errorOf(small.createObject({ typeId, key: 'other', content: '{}', upsert: true }))).toMatchObject({
      facts: { limit: 'memory_objects' },
    });
  });
});
