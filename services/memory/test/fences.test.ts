import { join } from 'node:path';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { config } from '../src/config.ts';
import { openDeps, type Deps } from '../src/deps.ts';
import { FENCES } from '../src/types/fences.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { USAGE } from '../src/usage/store.ts';
import { errorOf, reasonAndPathOf, SCHEMA } from './fixture.ts';

// Handlers on the real store, so that a test can stop one of them between its read and its write. Engines differ in the number of rows.
describe.each([1, 4])('with %i fence rows a type', (rows) => {
  const folder = temporaryFolder();
  let opened: OpenStore;
  let deps: Deps;
  let context: CallContext;
  beforeAll(async () => {
    deps = await openDeps({
      config: { ...readConfig(config, {}), LEASE_MS: 120_000 },
      clock: systemClock,
      log: makeLog('memory', 'silent'),
      instanceId: newId(),
      openStore: async (collections: readonly Collection<never>[]) => {
        opened = await openTestStore(join(folder.path, `memory-${rows}.db`), [...collections, OUTBOX, LEASES]);
        return { ...opened, counterShards: rows };
      },
      openBus: async () => undefined,
    } as unknown as Parameters<typeof openDeps>[0]);
  });
  afterAll(async () => {
    await deps.counterShards.close();
    await opened.close();
    folder.remove();
  });
  beforeEach(() => {
    context = {
      principal: serverToken(newId()),
      caller: 'gateway',
      requestId: newId(),
      signal: new AbortController().signal,
      deadline: Date.now() + 60_000,
      log: makeLog('test', 'silent'),
    };
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

  /** Dependencies under which a handler, right after its first reading of fences or type, waits until `meanwhile` is done. */
  function pausedAfter(part: 'types' | 'fences', method: string, meanwhile: () => Promise<unknown>): Deps {
    let left = 1;
    const read = (deps[part] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]!;
    const paused = async (...args: unknown[]) => {
      const found = await read(...args);
      if (left-- > 0) await meanwhile();
      return found;
    };
    return { ...deps, mutex: (_, work) => work(), [part]: { ...deps[part], [method]: paused } };
  }

  /** What is kept of the organization, next to what the counters say. */
  async function kept() {
    const organizationId = context.principal.organizationId;
    const { store } = opened;
    const [types, objects, fences, usage] = [
      await store.find(organizationId, TYPES, {}),
      await store.find(organizationId, OBJECTS, {}),
      await store.find(organizationId, FENCES, {}),
      await store.find(organizationId, USAGE, {}),
    ];
    const sum = (rows: { count: number }[]) => rows.reduce((total, { count }) => total + count, 0);
    return {
      types,
      objects,
      orphans: objects.filter(({ typeId }) => !types.some(({ _id }) => _id === typeId)).length,
      wrongCounts: types.filter(
        ({ _id }) =>
          sum(fences.filter(({ typeId }) => typeId === _id)) !== objects.filter(({ typeId }) => typeId === _id).length,
      ).length,
      wrongRows: fences.length - types.length * rows,
      wrongUsage: [
        sum(usage.map(({ objects: count }) => ({ count }))) - objects.length,
        sum(usage.map(({ types: count }) => ({ count }))) - types.length,
      ],
      wrongBytes:
        sum(usage.map(({ schemaBytes: count }) => ({ count }))) -
        types.reduce((total, { jsonSchema }) => total + Buffer.byteLength(jsonSchema), 0),
    };
  }
  const sound = { orphans: 0, wrongCounts: 0, wrongRows: 0, wrongUsage: [0, 0], wrongBytes: 0 };

  it('a create that was paused while its type was deleted is refused', async () => {
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
    expect(await kept()).toMatchObject({ ...sound, types: [], objects: [] });
  });
  it('a deletion that was paused while an object was created is refused', async () => {
    const typeId = await createType();
    expect(
      await errorOf(
        removeType(
          typeId,
          pausedAfter('fences', 'find', () => create(typeId)),
        ),
      ),
    ).toMatchObject({ reason: 'TYPE_IN_USE', facts: { count: 1 } });
    expect(await kept()).toMatchObject(sound);
  });
  it('a create that was paused while the schema changed is checked against the new one', async () => {
    const typeId = await createType();
    const change = () => putSchema(typeId, { required: ['name'] });
    expect(await reasonAndPathOf(create(typeId, pausedAfter('types', 'byId', change)))).toEqual([
      'INVALID_CONTENT',
      '/content/name',
    ]);
    const back = () => putSchema(typeId, { properties: { price: { type: 'number' } } });
    expect(await create(typeId, pausedAfter('types', 'byId', back), '{"name":1}')).toMatchObject({ schemaVersion: 3 });
    expect(await kept()).toMatchObject(sound);
  });
  it('an update that was paused while object and schema were replaced does not bring the object back', async () => {
    const typeId = await createType();
    const { id } = await create(typeId);
    const meanwhile = async () => {
      await removeObject(id);
      await putSchema(typeId, {});
    };
    expect((await errorOf(patch(id, '{"price":2}', pausedAfter('types', 'byId', meanwhile)))).reason).toBe('NOT_FOUND');
    expect(await kept()).toMatchObject({ ...sound, objects: [] });
  });
  it('a change of the schema that was paused while an object was created is refused', async () => {
    const typeId = await createType();
    expect(
      await errorOf(
        putSchema(
          typeId,
          {},
          pausedAfter('fences', 'find', () => create(typeId)),
        ),
      ),
    ).toMatchObject({ reason: 'SCHEMA_IN_USE', facts: { count: 1 } });
    expect(await kept()).toMatchObject(sound);
  });
  it('a change of the schema that was paused while another changed it goes on from there', async () => {
    const typeId = await createType();
    expect(
      await putSchema(
        typeId,
        { title: 'b' },
        pausedAfter('fences', 'find', () => putSchema(typeId, { title: 'a' })),
      ),
    ).toMatchObject({ version: 3, jsonSchema: '{"title":"b"}' });
    await expect(create(typeId)).resolves.toBeDefined();
    expect(await kept()).toMatchObject(sound);
  });
  it('a rename does not hold writers up', async () => {
    const typeId = await createType();
    const rename = () =>
      updateMemoryType(
        deps,
        UpdateMemoryTypeRequest.fromPartial({ pathId: typeId, type: 'Renamed', updateMask: ['type'] }),
        context,
      );
    let rounds = 0;
    const paused = pausedAfter('types', 'byId', rename);
    const counting = {
      ...paused,
      types: {
        ...paused.types,
        byId: (...args: Parameters<Deps['types']['byId']>) => (rounds++, paused.types.byId(...args)),
      },
    };
    await create(typeId, counting);
    expect(rounds).toBe(1);
    expect(await kept()).toMatchObject(sound);
  });
  it('a writer that loses every round is told of the conflict', async () => {
    const typeId = await createType();
    let version = 1;
    const restless: Deps = {
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
    expect((await errorOf(create(typeId, restless))).reason).toBe('CONFLICT');
    expect(await kept()).toMatchObject({ ...sound, objects: [] });
  });

  it('among creates, updates and deletions of objects and types at once, no object is left without type and every count is exact', async () => {
    const tally = { created: 0, noType: 0, deleted: 0, inUse: 0 };
    const note = (outcome: keyof typeof tally) => () => void tally[outcome]++;
    const refused = (error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      if (error.reason === 'NOT_FOUND') return void tally.noType++;
      if (error.reason !== 'TYPE_IN_USE' && error.reason !== 'SCHEMA_IN_USE') throw error;
      tally.inUse++;
    };
    const turn = () => new Promise((resolve) => setImmediate(resolve));
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
        for (let n = 0; n < turns; n++) await turn();
        return work();
      };
      const deletions = Array.from({ length: 5 }, (_, n) =>
        later(2 * n + 4 * (round % 5), () => removeType(typeId)).then(note('deleted'), refused),
      );
      // on any engine, however long its writes take, some come late
      const first = round % 8 === 7 ? deletions[0] : undefined;
      const creates = Array.from(
        { length: 6 },
        async (_, n) => (await first, later(n + (round % 13), churn).then(note('created'), refused)),
      );
      const changes = Array.from({ length: 2 }, (_, n) =>
        later(3 * n, () => putSchema(typeId, { ...SCHEMA, title: `${n}` })).then(() => undefined, refused),
      );
      await Promise.all([...creates, ...deletions, ...changes]);
    }
    const after = await kept();
    expect(after).toMatchObject(sound);
    expect(new Set(after.objects.map(({ _id }) => _id))).toEqual(acknowledged);
    expect(Object.entries(tally).filter(([, count]) => count === 0)).toEqual([]);
  });
});
