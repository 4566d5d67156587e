import { join } from 'node:path';
import fc from 'fast-check';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest, UpdateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { update } from 'platform/store/store.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { errorOf, startMemory, type Caller, type Memory } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

let memory: Memory;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());

const jsonSchema = '{"type":"object"}';
const AB = { properties: ['/a', '/b'], separator: '-' };
/** The first two of each are other values that give one key. */
const COLLISIONS = [
  ['a separator inside of a value', AB, { a: 'x-y', b: 'z' }, { a: 'x', b: 'y-z' }],
  ['a number and its text', AB, { a: 'x', b: 1 }, { a: 'x', b: '1' }],
  ['a boolean and its text', { properties: ['/a'] }, { a: true }, { a: 'true' }],
  ['a separator at the ends', { ...AB, separator: '--' }, { a: 'x-', b: 'y' }, { a: 'x', b: '-y' }],
] as const;

describe.each(COLLISIONS)('where other values give the same key: %s', (_what, idSchema, one, other) => {
  const texts = [JSON.stringify(one), JSON.stringify(other)] as const;
  let token: Caller;
  let typeId: string;
  let id: string;
  beforeEach(async () => {
    token = memory.organization();
    ({ id: typeId } = await token.type({
      jsonSchema,
      idSchema: { ...idSchema, properties: [...idSchema.properties] },
    }));
    ({ id } = await token.object({ typeId, key: undefined, content: texts[0] }));
  });

  it.each([true, false])('a create with upsert=%s is 409 with the id, and changes nothing', async (upsert) => {
    const before = await token.getObject(id);
    const refused = await errorOf(token.createObject({ typeId, key: undefined, content: texts[1], upsert }));
    expect(refused).toMatchObject({ reason: 'ALREADY_EXISTS', facts: { id } });
    expect(await token.getObject(id)).toEqual(before);
    expect((await token.listObjects()).total).toBe(1);
  });

  it('an upsert of the same values replaces', async () => {
    const content = JSON.stringify({ ...one, more: 1 });
    const { outcome, memoryObject } = await token.createObject({ typeId, key: undefined, content, upsert: true });
    expect([outcome, memoryObject!.id, memoryObject!.content]).toEqual(['REPLACED', id, content]);
  });

  it('a PATCH to them is refused, and one of the same values is not', async () => {
    expect((await errorOf(token.patchObject(id, { content: texts[1] }))).reason).toBe('KEY_CHANGED');
    const content = JSON.stringify({ ...one, more: 1 });
    expect(await token.patchObject(id, { content })).toMatchObject({ revision: 2, content });
  });
});

describe('an object that a change by force left without the values of its key', () => {
  const setUp = async (content: string) => {
    const token = memory.organization();
    const { id: typeId } = await token.type({ jsonSchema });
    const { id } = await token.object({ typeId, key: 'x-1', content });
    await token.changeType(typeId, { idSchema: AB, force: true });
    return { token, typeId, id };
  };
  it('is mended by a PATCH that makes its key, and replaced by no upsert', async () => {
    const { token, typeId, id } = await setUp('{"a":"x"}');
    const content = '{"a":"x","b":1}';
    const upsert = token.createObject({ typeId, key: undefined, content, upsert: true });
    expect(await errorOf(upsert)).toMatchObject({ reason: 'ALREADY_EXISTS', facts: { id } });
    expect(await token.patchObject(id, { content })).toMatchObject({ key: 'x-1', content });
  });
});

it('an empty separator that a release before stored goes on to work, and a PUT of the type as it is keeps it', async () => {
  const folder = temporaryFolder();
  const { deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 1);
  const context = contextOf(serverToken(newId()));
  const idSchema = { ...AB, separator: '' };
  const create = (content: object) =>
    createMemoryObject(
      deps,
      CreateMemoryObjectRequest.fromPartial({ type: 'old', content: JSON.stringify(content), upsert: true }),
      context,
    );
  const put = (given: typeof idSchema) =>
    updateMemoryType(
      deps,
      UpdateMemoryTypeRequest.fromPartial({ pathId: type!.id, idSchema: given, updateMask: ['idSchema'] }),
      context,
    );
  const { memoryType: type } = await createMemoryType(
    deps,
    CreateMemoryTypeRequest.fromPartial({ type: 'old', jsonSchema, idSchema: AB }),
    context,
  );
  await opened.platformStore.apply([update(TYPES, { _id: type!.id }, { set: { idSchema: JSON.stringify(idSchema) } })]);
  const { memoryObject } = await create({ a: 'x', b: 'yz' });
  const facts = { id: memoryObject!.id };
  expect(memoryObject).toMatchObject({ key: 'xyz', revision: 1 });
  expect(await errorOf(create({ a: 'xy', b: 'z' }))).toMatchObject({ reason: 'ALREADY_EXISTS', facts });
  expect(await create({ a: 'x', b: 'yz', c: 1 })).toMatchObject({ outcome: 'REPLACED' });
  expect((await put(idSchema)).memoryType).toMatchObject({ idSchema, version: 1 });
  expect(await errorOf(put(AB))).toMatchObject({ reason: 'SCHEMA_INCOMPATIBLE' });
  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});

const value = fc.oneof(
  fc.string({ unit: fc.constantFrom('-', ':', '1', 'a', '\\', '"'), minLength: 1, maxLength: 3 }),
  fc.constantFrom('true', '1', '1-1', '-'),
  fc.integer({ min: -11, max: 11 }),
  fc.boolean(),
);
const idSchemas = fc.record({
  properties: fc.constantFrom<string[]>(['/a'], ['/a', '/b'], ['/a', '/b', '/c']),
  separator: fc.constantFrom('-', ':', '--', '1', '\\', '"'),
});
const writes = fc.array(
  fc.record({ how: fc.constantFrom('upsert', 'upsert', 'create', 'patch'), a: value, b: value, c: value }),
  { minLength: 2, maxLength: 12 },
);

it('one list of values has at most one object, and no write gives an object other values', async () => {
  await fc.assert(
    fc.asyncProperty(idSchemas, writes, async (idSchema, all) => {
      const token = memory.organization();
      const { id: typeId } = await token.type({ jsonSchema, idSchema });
      const valuesOf = (content: Record<string, unknown>): string =>
        JSON.stringify(idSchema.properties.map((pointer) => content[pointer.slice(1)]));
      const idOf = new Map<string, string>();
      const keys = new Map<string, string>();
      for (const { how, ...content } of all) {
        const values = valuesOf(content);
        const text = JSON.stringify(content);
        const [first] = idOf.values();
        const write =
          how === 'patch' && first !== undefined
            ? token.patchObject(first, { content: text })
            : token.object({ typeId, key: undefined, content: text, upsert: how !== 'create' });
        const written = await write.catch((error: unknown) => error as ServiceError);
        if (written instanceof ServiceError) {
          expect(['ALREADY_EXISTS', 'KEY_CHANGED']).toContain(written.reason);
          if (how === 'upsert') {
            // refused only where other values have the key
            expect(idOf.has(values)).toBe(false);
            expect([...keys.keys()]).toContain(written.facts.id);
          }
          continue;
        }
        expect(idOf.get(values) ?? written.id).toBe(written.id);
        expect(keys.get(written.id) ?? written.key).toBe(written.key);
        idOf.set(values, written.id);
        keys.set(written.id, written.key);
      }
      const { items } = await token.listObjects();
      expect(new Map(items.map(({ id, content }) => [valuesOf(JSON.parse(content) as never), id]))).toEqual(idOf);
      expect(new Set(keys.values()).size).toBe(keys.size);
    }),
    { numRuns: Number(process.env.PROPERTY_RUNS ?? 25) },
  );
});

it('of upserts at once with other values of one key, those of one list win, and the others are 409', async () => {
  const token = memory.organization();
  const { id: typeId } = await token.type({ jsonSchema, idSchema: AB });
  const contents = Array.from({ length: 32 }, (_, n) => ({
    ...(n % 2 ? { a: 'x', b: 'y-z' } : { a: 'x-y', b: 'z' }),
    n,
  }));
  const results = await Promise.all(
    contents.map((content) =>
      token.createObject({ typeId, key: undefined, content: JSON.stringify(content), upsert: true }).then(
        () => content.a,
        (error: unknown) => (error as ServiceError).reason,
      ),
    ),
  );
  const { items } = await token.listObjects();
  const { a } = JSON.parse(items[0]!.content) as { a: string };
  expect([items.length, results.filter((result) => result === a).length]).toEqual([1, 16]);
  expect(results.filter((result) => result === 'ALREADY_EXISTS')).toHaveLength(16);
});
