import { join } from 'node:path';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { OpenStore } from 'platform/store/store.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { Deps } from '../src/deps.ts';
import { FENCES } from '../src/types/fences.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { getMemoryObject } from '../src/objects/get-memory-object.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { USAGE } from '../src/usage/store.ts';
import { errorOf, reasonAndPathOf, SCHEMA } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

// Calls handlers on a real store, so that a test can pause one of them between its read and its write.
// Engines differ in the number of counter shards, hence of fences.
describe.each([1, 4])('with %i fences for each type', (shardCount) => {
  const folder = temporaryFolder();
  let opened: OpenStore;
  let deps: Deps;
  let context: CallContext;
  beforeAll(async () => {
    ({ deps, opened } = await openTestDeps(join(folder.path, `memory-${shardCount}.db`), shardCount));
  });
  afterAll(async () => {
    await deps.counterShards.close();
    await opened.close();
    folder.remove();
  });
  beforeEach(() => {
    context = contextOf(serverToken(newId()));
  });

  const createType = async (): Promise<string> =>
    (
      await createMemoryType(
        deps,
        CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: JSON.stringify(SCHEMA) }),
        context,
      )
    ).memoryType!.id;
  const create = (typeId: string, using = deps, content = '{"price":1}') =>
    createMemoryObject(using, CreateMemoryObjectRequest.fromPartial({ typeId, key: newId(), content }), context).then(
      ({ memoryObject }) => memoryObject!,
    );
  const patch = (id: string, content: string, using = deps) =>
    updateMemoryObject(
      using,
      UpdateMemoryObjectRequest.fromPartial({ pathId: id, content, updateMask: ['content'] }),
      context,
    );
  const removeObject = (id: string, using = deps) => deleteMemoryObject(using, { id }, context);
  const putSchema = (id: string, schema: object, using = deps) =>
    updateMemoryType(
      using,
      UpdateMemoryTypeRequest.fromPartial({
        pathId: id,
        jsonSchema: JSON.stringify(schema),
        updateMask: ['jsonSchema'],
      }),
      context,
    ).then(({ memoryType }) => memoryType!);
  const removeType = (id: string, using = deps) => deleteMemoryType(using, { id }, context);

  /** Dependencies that make a handler wait for `meanwhile`, right after it first called this method of the store. */
  function pausedAfter(store: 'types' | 'fences', method: string, meanwhile: () => Promise<unknown>): Deps {
    let left = 1;
    const read = (deps[store] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]!;
    const paused = async (...args: unknown[]) => {
      const found = await read(...args);
      if (left-- > 0) await meanwhile();
      return found;
    };
    return { ...deps, mutex: (_organizationId, _key, work) => work(), [store]: { ...deps[store], [method]: paused } };
  }

  /** What the store holds of the organization, and by how much the counters are wrong. */
  async function stored() {
    const organizationId = context.principal.organizationId;
    const { store } = opened;
    const [types, objects, fences, usage] = [
      await store.find(organizationId, TYPES, {}),
      await store.find(organizationId, OBJECTS, {}),
      await store.find(organizationId, FENCES, {}),
      await store.find(organizationId, USAGE, {}),
    ];
    const sum = (counts: { count: number }[]) => counts.reduce((total, { count }) => total + count, 0);
    return {
      types,
      objects,
      orphans: objects.filter(({ typeId }) => !types.some(({ _id }) => _id === typeId)).length,
      wrongCounts: types.filter(
        ({ _id }) =>
          sum(fences.filter(({ typeId }) => typeId === _id)) !== objects.filter(({ typeId }) => typeId === _id).length,
      ).length,
      wrongFences: fences.length - types.length * shardCount,
      wrongUsage: [
        sum(usage.map(({ objects: count }) => ({ count }))) - objects.length,
        sum(usage.map(({ types: count }) => ({ count }))) - types.length,
      ],
      wrongBytes:
        sum(usage.map(({ schemaBytes: count }) => ({ count }))) -
        types.reduce((total, { jsonSchema }) => total + Buffer.byteLength(jsonSchema), 0),
    };
  }
  const consistent = { orphans: 0, wrongCounts: 0, wrongFences: 0, wrongUsage: [0, 0], wrongBytes: 0 };

  it('lets another organization, which names the same ids, not wait for writes under way', async () => {
    const typeId = await createType();
    const { id } = await create(typeId);
    const stopped = Promise.withResolvers<void>();
    const underWay = (['fences', 'types'] as const).map((store) => {
      const reached = Promise.withResolvers<void>();
      const pausing = pausedAfter(store, store === 'fences' ? 'ofType' : 'byId', () => {
        reached.resolve();
        return stopped.promise;
      });
      return { using: { ...pausing, mutex: deps.mutex }, reached: reached.promise };
    });
    const writes = [putSchema(typeId, SCHEMA, underWay[0]!.using), patch(id, '{"price":2}', underWay[1]!.using)];
    await Promise.all(underWay.map(({ reached }) => reached));

    const theirs = { ...context, principal: serverToken(newId()) };
    const patchOfTheirs = UpdateMemoryObjectRequest.fromPartial({
      pathId: id,
      content: '{"price":3}',
      updateMask: ['content'],
    });
    const putOfTheirs = UpdateMemoryTypeRequest.fromPartial({
      pathId: typeId,
      displayName: 'x',
      updateMask: ['displayName'],
    });
    const attempts = [
      updateMemoryObject(deps, patchOfTheirs, theirs),
      deleteMemoryObject(deps, { id }, theirs),
      updateMemoryType(deps, putOfTheirs, theirs),
      deleteMemoryType(deps, { id: typeId }, theirs),
    ];
    for (const error of await Promise.all(attempts.map(errorOf))) expect(error).toMatchObject({ reason: 'NOT_FOUND' });
    stopped.resolve();
    await Promise.all(writes);
  });

  it('rejects a create that was paused while its type was deleted', async () => {
    const typeId = await createType();
    expect(
      (
        await errorOf(
          create(
            typeId,
            pausedAfter('types', 'byId', () => removeType(typeId)),
          ),
        )
      ).reason,
    ).toBe('NOT_FOUND');
    expect(await stored()).toMatchObject({ ...consistent, types: [], objects: [] });
  });
  it('rejects the deletion of a type that was paused while an object was created', async () => {
    const typeId = await createType();
    expect(
      await errorOf(
        removeType(
          typeId,
          pausedAfter('fences', 'ofType', () => create(typeId)),
        ),
      ),
    ).toMatchObject({ reason: 'TYPE_IN_USE', facts: { count: 1 } });
    expect(await stored()).toMatchObject(consistent);
  });
  it('validates a create that was paused while the schema changed against the new schema', async () => {
    const typeId = await createType();
    const change = () => putSchema(typeId, { required: ['name'] });
    expect(await reasonAndPathOf(create(typeId, pausedAfter('types', 'byId', change)))).toEqual([
      'INVALID_CONTENT',
      '/content/name',
    ]);
    const back = () => putSchema(typeId, { properties: { price: { type: 'number' } } });
    expect(await create(typeId, pausedAfter('types', 'byId', back), '{"name":1}')).toMatchObject({ schemaVersion: 3 });
    expect(await stored()).toMatchObject(consistent);
  });
  it('rejects an update that was paused while the object was deleted and the schema changed', async () => {
    const typeId = await createType();
    const { id } = await create(typeId);
    const meanwhile = async () => {
      await removeObject(id);
      await putSchema(typeId, {});
    };
    expect((await errorOf(patch(id, '{"price":2}', pausedAfter('types', 'byId', meanwhile)))).reason).toBe('NOT_FOUND');
    expect(await stored()).toMatchObject({ ...consistent, objects: [] });
  });
  it.each(['update', 'deletion'])(
    'refuses an %s with If-Match that was paused while its type got another name',
    async (kind) => {
      const typeId = await createType();
      const { id } = await create(typeId);
      const { etag: ifMatch } = await getMemoryObject(deps, { id }, context);
      const rename = () =>
        updateMemoryType(
          deps,
          UpdateMemoryTypeRequest.fromPartial({ pathId: typeId, type: `t${newId()}`, updateMask: ['type'] }),
          context,
        );
      const using = pausedAfter('types', 'header', rename);
      const write =
        kind === 'update'
          ? updateMemoryObject(
              using,
              UpdateMemoryObjectRequest.fromPartial({
                pathId: id,
                content: '{"price":2}',
                updateMask: ['content'],
                ifMatch,
              }),
              context,
            )
          : deleteMemoryObject(using, { id, ifMatch }, context);
      expect((await errorOf(write)).reason).toBe('PRECONDITION_FAILED');
      expect((await stored()).objects).toMatchObject([{ _id: id, content: '{"price":1}', revision: 1 }]);
    },
  );

  it('rejects a change of the schema that was paused while an object was created', async () => {
    const typeId = await createType();
    expect(
      await errorOf(
        putSchema(
          typeId,
          { required: ['name'] },
          pausedAfter('fences', 'ofType', () => create(typeId)),
        ),
      ),
    ).toMatchObject({ reason: 'SCHEMA_INCOMPATIBLE', facts: { count: 1 } });
    expect(await stored()).toMatchObject(consistent);
  });
  it('applies a change of the schema that was paused during another one on top of that one', async () => {
    const typeId = await createType();
    expect(
      await putSchema(
        typeId,
        { title: 'b' },
        pausedAfter('fences', 'ofType', () => putSchema(typeId, { title: 'a' })),
      ),
    ).toMatchObject({ version: 3, jsonSchema: '{"title":"b"}' });
    await expect(create(typeId)).resolves.toBeDefined();
    expect(await stored()).toMatchObject(consistent);
  });
  it('does not make a create fail or retry because of a rename', async () => {
    const typeId = await createType();
    const rename = () =>
      updateMemoryType(
        deps,
        UpdateMemoryTypeRequest.fromPartial({ pathId: typeId, type: 'Renamed', updateMask: ['type'] }),
        context,
      );
    let attempts = 0;
    const paused = pausedAfter('types', 'byId', rename);
    const counting = {
      ...paused,
      types: {
        ...paused.types,
        byId: (...args: Parameters<Deps['types']['byId']>) => (attempts++, paused.types.byId(...args)),
      },
    };
    await create(typeId, counting);
    expect(attempts).toBe(1);
    expect(await stored()).toMatchObject(consistent);
  });
  it('answers CONFLICT when every attempt of a create fails', async () => {
    const typeId = await createType();
    let version = 1;
    const changing: Deps = {
      ...deps,
      types: {
        ...deps.types,
        byId: async (...args) => {
          const found = await deps.types.byId(...args);
          await putSchema(typeId, { ...SCHEMA, title: `${version++}` });
          return found;
        },
      },
    };
    expect((await errorOf(create(typeId, changing))).reason).toBe('CONFLICT');
    expect(await stored()).toMatchObject({ ...consistent, objects: [] });
  });

  it('leaves no object without its type, and keeps every count exact, under concurrent writes', async () => {
    const tally = { created: 0, noType: 0, deleted: 0, inUse: 0 };
    const note = (outcome: keyof typeof tally) => () => void tally[outcome]++;
    const rejected = (error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      if (error.reason === 'NOT_FOUND') return void tally.noType++;
      if (error.reason !== 'TYPE_IN_USE' && error.reason !== 'TYPE_CHANGING') throw error;
      tally.inUse++;
    };
    const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
    const acknowledged = new Set<string>();
    for (let round = 0; round < 40; round++) {
      const typeId = await createType();
      const churn = async () => {
        const { id } = await create(typeId);
        acknowledged.add(id);
        await patch(id, '{"price":2}');
        if (round % 3 === 0) await removeObject(id).then(() => acknowledged.delete(id));
      };
      const later = async <T>(turns: number, work: () => Promise<T>) => {
        for (let n = 0; n < turns; n++) await nextTurn();
        return work();
      };
      const deletions = Array.from({ length: 5 }, (_, n) =>
        later(2 * n + 4 * (round % 5), () => removeType(typeId)).then(note('deleted'), rejected),
      );
      // In every eighth round the creates start after a deletion, so that some find no type on every engine.
      const first = round % 8 === 7 ? deletions[0] : undefined;
      const creates = Array.from(
        { length: 6 },
        async (_, n) => (await first, later(n + (round % 13), churn).then(note('created'), rejected)),
      );
      const changes = Array.from({ length: 2 }, (_, n) =>
        later(3 * n, () => putSchema(typeId, { ...SCHEMA, title: `${n}` })).then(() => undefined, rejected),
      );
      await Promise.all([...creates, ...deletions, ...changes]);
    }
    const after = await stored();
    expect(after).toMatchObject(consistent);
    expect(new Set(after.objects.map(({ _id }) => _id))).toEqual(acknowledged);
    expect(Object.entries(tally).filter(([, count]) => count === 0)).toEqual([]);
  });
});
