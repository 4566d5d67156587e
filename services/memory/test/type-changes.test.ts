import { join } from 'node:path';
import { jest } from '@jest/globals';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { newId } from 'platform/core/ids.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { update, type OpenStore } from 'platform/store/store.ts';
import { cancelMemoryTypeChange } from '../src/changes/cancel-memory-type-change.ts';
import { TYPE_CHANGES } from '../src/changes/store.ts';
import type { Deps } from '../src/deps.ts';
import { typeChangesJob } from '../src/jobs/type-changes.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { REFERENCES } from '../src/references/store.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { getMemoryType } from '../src/types/get-memory-type.ts';
import { FENCES } from '../src/types/fences.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { USAGE } from '../src/usage/store.ts';
import { errorOf, SCHEMA } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

// Calls handlers on a real store, so that a test can hold a change while it reads the objects.
const folder = temporaryFolder();
let opened: OpenStore;
let deps: Deps;
let context: CallContext;
beforeAll(async () => {
  ({ deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 4));
});
afterAll(async () => {
  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});
beforeEach(() => {
  context = contextOf(serverToken(newId()));
});

const STRICTER = JSON.stringify({ ...SCHEMA, properties: { price: { type: 'number', maximum: 10 } } });

const createType = async (): Promise<string> => {
  const request = CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: JSON.stringify(SCHEMA) });
  return (await createMemoryType(deps, request, context)).memoryType!.id;
};
const create = async (typeId: string, price: number, using = deps, key: string = newId()) => {
  const request = CreateMemoryObjectRequest.fromPartial({ typeId, key, content: `{"price":${price}}` });
  return (await createMemoryObject(using, request, context)).memoryObject!;
};
const patch = (pathId: string, price: number) => {
  const request = { pathId, content: `{"price":${price}}`, updateMask: ['content'] };
  return updateMemoryObject(deps, UpdateMemoryObjectRequest.fromPartial(request), context);
};
const put = (pathId: string, jsonSchema = STRICTER, using = deps) => {
  const request = UpdateMemoryTypeRequest.fromPartial({ pathId, jsonSchema, updateMask: ['jsonSchema'] });
  return updateMemoryType(using, request, context);
};
const cascade = (id: string, using = deps) => deleteMemoryType(using, { id, cascade: true }, context);

/** Dependencies whose work stops when it has read its first objects, until `release` is called. */
function held(using = deps) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const { ofType, anyOfType } = using.objects;
  const hold =
    <A extends unknown[], R>(read: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const page = await read(...args);
      reached.resolve();
      await released.promise;
      return page;
    };
  return {
    using: { ...using, objects: { ...using.objects, ofType: hold(ofType), anyOfType: hold(anyOfType) } },
    reached: reached.promise,
    release: () => released.resolve(),
  };
}

/** As if the process that does the work had died, and its lease had expired. */
const expireLease = (typeId: string) =>
  opened.platformStore.apply([update(TYPE_CHANGES, { _id: typeId }, { set: { leaseUntil: 0 } })]);
/** Another replica's. */
const runJob = () => typeChangesJob({ ...deps, instanceId: newId() }).run(new AbortController().signal);

const typeOf = (typeId: string) => opened.platformStore.findOne(TYPES, { _id: typeId });
const changeOf = (typeId: string) => opened.platformStore.findOne(TYPE_CHANGES, { _id: typeId });
async function eventsOf(subject: string): Promise<string[]> {
  const { organizationId } = context.principal;
  const rows = await opened.platformStore.find(OUTBOX, { organizationId });
  return rows
    .map(({ event }) => JSON.parse(event) as CloudEvent)
    .filter((event) => event.subject === subject)
    .map(({ type, sequence }) => `${type} ${sequence}`);
}
/** How much the counters differ from what is stored. */
async function miscounted(): Promise<number[]> {
  const { organizationId } = context.principal;
  const [types, objects, fences, usage] = [
    await opened.store.find(organizationId, TYPES, {}),
    await opened.store.find(organizationId, OBJECTS, {}),
    await opened.store.find(organizationId, FENCES, {}),
    await opened.store.find(organizationId, USAGE, {}),
  ];
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
  return [
    sum(fences.map(({ count }) => count)) - objects.length,
    sum(usage.map((one) => one.objects)) - objects.length,
    sum(usage.map((one) => one.types)) - types.length,
    sum(usage.map((one) => one.bytes ?? 0)) - sum([...types, ...objects].map(({ bytes }) => bytes ?? 0)),
    sum(usage.map((one) => one.schemaBytes)) - sum(types.map(({ jsonSchema }) => Buffer.byteLength(jsonSchema))),
  ];
}
afterEach(async () => {
  expect(await miscounted()).toEqual([0, 0, 0, 0, 0]);
});

describe('while objects are checked for a change', () => {
  it('a write must fit both schemas, and one that was read before the announcement is checked again', async () => {
    const typeId = await createType();
    const { id } = await create(typeId, 1);
    const change = held();
    const earlier = Promise.withResolvers<void>();
    const readBefore = Promise.withResolvers<void>();
    const byId: Deps['types']['byId'] = async (...args) => {
      const type = await deps.types.byId(...args);
      readBefore.resolve();
      await earlier.promise;
      return type;
    };
    const late = create(typeId, 11, { ...deps, types: { ...deps.types, byId } });
    await readBefore.promise;
    const changing = put(typeId, STRICTER, change.using);
    await change.reached;
    earlier.resolve();
    expect(await errorOf(late)).toMatchObject({ reason: 'TYPE_CHANGING', details: [{ path: '/content/price' }] });
    expect((await errorOf(patch(id, 11))).reason).toBe('TYPE_CHANGING');
    expect((await errorOf(patch(id, '"x"' as never))).reason).toBe('INVALID_CONTENT');
    await patch(id, 10);
    await create(typeId, 9);
    expect((await errorOf(put(typeId, '{}'))).reason).toBe('TYPE_CHANGING');
    expect((await errorOf(cascade(typeId))).reason).toBe('TYPE_CHANGING');
    change.release();
    expect(await changing).toMatchObject({ outcome: 'DONE', memoryType: { version: 2, state: 'active' } });
    expect((await errorOf(create(typeId, 11))).reason).toBe('INVALID_CONTENT');
  });

  it('an object must have the key that the new idSchema would make of its content', async () => {
    const typeId = await createType();
    const { id } = await create(typeId, 1, deps, '1');
    const change = held();
    const idSchema = { properties: ['/price'], separator: ':' };
    const request = UpdateMemoryTypeRequest.fromPartial({ pathId: typeId, idSchema, updateMask: ['idSchema'] });
    const changing = updateMemoryType(change.using, request, context);
    await change.reached;
    for (const write of [create(typeId, 2), patch(id, 3)]) expect((await errorOf(write)).reason).toBe('TYPE_CHANGING');
    await create(typeId, 2, deps, '2');
    change.release();
    expect((await changing).memoryType).toMatchObject({ version: 2, change: { state: 'done' } });
  });

  it('a deletion sets no null that only the new schema forbids', async () => {
    const relation = { name: 'next', path: '/next', cardinality: 'one', onDelete: 'setNull' };
    const name = `t${newId()}`;
    const given = { type: name, jsonSchema: '{}', relations: [{ ...relation, targetType: name }] };
    const { memoryType } = await createMemoryType(deps, CreateMemoryTypeRequest.fromPartial(given), context);
    const { id: typeId } = memoryType!;
    const createLink = async (key: string, content: string) =>
      (await createMemoryObject(deps, CreateMemoryObjectRequest.fromPartial({ typeId, key, content }), context))
        .memoryObject!;
    const target = await createLink('a', '{}');
    await createLink('b', '{"next":"a"}');
    const change = held();
    const changing = put(typeId, '{"not":{"required":["next"],"properties":{"next":{"const":null}}}}', change.using);
    await change.reached;
    const deletion = deleteMemoryObject(deps, { id: target.id, ifMatch: undefined }, context);
    expect((await errorOf(deletion)).reason).toBe('TYPE_CHANGING');
    change.release();
    expect(await changing).toMatchObject({ outcome: 'DONE' });
  });

  it('a type that others point to stays visible to all who are to see those', async () => {
    const targetId = await createType();
    const visibility = (pathId: string, given: string, jsonSchema?: string, using = deps) =>
      updateMemoryType(
        using,
        UpdateMemoryTypeRequest.fromPartial({
          ...{ pathId, visibility: given, jsonSchema },
          updateMask: ['visibility', ...(jsonSchema === undefined ? [] : ['jsonSchema'])],
        }),
        context,
      );
    const { type } = (await typeOf(targetId))!;
    const relations = [{ name: 'to', targetType: type, path: '/to', cardinality: 'one' }];
    const request = { type: `t${newId()}`, jsonSchema: '{}', visibility: 'private', relations };
    const { memoryType } = await createMemoryType(deps, CreateMemoryTypeRequest.fromPartial(request), context);
    const { id } = memoryType!;
    await create(id, 1);
    const change = held();
    const changing = visibility(id, 'organization', '{"minProperties":0}', change.using);
    await change.reached;
    expect(await errorOf(visibility(targetId, 'private'))).toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path: '/visibility' }],
    });
    change.release();
    expect(await changing).toMatchObject({ outcome: 'DONE', memoryType: { visibility: 'organization' } });
  });

  it('it can be cancelled: the type stays as it was, and the request says so', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const change = held();
    const changing = put(typeId, STRICTER, change.using);
    await change.reached;
    const { memoryType } = await cancelMemoryTypeChange(deps, { id: typeId }, context);
    expect(memoryType).toMatchObject({ state: 'active', version: 1, change: { state: 'cancelled' } });
    change.release();
    expect((await errorOf(changing)).reason).toBe('CONFLICT');
    await create(typeId, 11);
    expect((await errorOf(cancelMemoryTypeChange(deps, { id: typeId }, context))).reason).toBe('NOT_FOUND');
    expect(await eventsOf(`types/${typeId}`)).toEqual(['memory.type.created.v1 1']);
  });

  it('a dry run that read the type before does not take its place', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const { deps: other } = await openTestDeps(join(folder.path, 'memory.db'), 4, async () => opened);
    const change = held();
    let changing: ReturnType<typeof put> | undefined;
    const countRunning: Deps['changes']['countRunning'] = async (organizationId) => {
      changing ??= put(typeId, STRICTER, change.using);
      await change.reached;
      return other.changes.countRunning(organizationId);
    };
    const ask = { pathId: typeId, jsonSchema: STRICTER, updateMask: ['jsonSchema'], dryRun: true };
    const using = { ...other, changes: { ...other.changes, countRunning } };
    const asking = updateMemoryType(using, UpdateMemoryTypeRequest.fromPartial(ask), context);
    expect((await errorOf(asking)).reason).toBe('TYPE_CHANGING');
    change.release();
    expect((await changing)?.memoryType).toMatchObject({ version: 2, change: { state: 'done' } });
  });

  it('another process goes on when its process dies; what that one writes late is refused', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const dead = held();
    const changing = put(typeId, STRICTER, dead.using);
    await dead.reached;
    expect(await runJob()).toBe(0);
    await expireLease(typeId);
    expect(await runJob()).toBe(1);
    expect(await typeOf(typeId)).toMatchObject({ version: 2, state: 'active', next: null, jsonSchema: STRICTER });
    dead.release();
    expect((await changing).memoryType).toMatchObject({ version: 2, change: { state: 'done' } });
    expect(await eventsOf(`types/${typeId}`)).toEqual(['memory.type.created.v1 1', 'memory.type.updated.v1 2']);
  });

  it('shows on the type how many are checked, of how many, and keeps the work while it goes on', async () => {
    const typeId = await createType();
    await Promise.all(Array.from({ length: 40 }, () => create(typeId, 1)));
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const ofType: Deps['objects']['ofType'] = async (organizationId, id, page) => {
      if (page.after) {
        reached.resolve();
        await released.promise;
      } else {
        laterMs = 50_000;
        noteAfterMs = 1_001;
      }
      return deps.objects.ofType(organizationId, id, page);
    };
    let laterMs = 0;
    // It is noted once a second.
    let noteAfterMs = 0;
    const storeNow = async () => (await deps.storeNow()) + laterMs;
    const startedAt = await storeNow();
    const realNow = performance.now.bind(performance);
    const now = jest.spyOn(performance, 'now').mockImplementation(() => realNow() + noteAfterMs);
    const using = { ...deps, storeNow, objects: { ...deps.objects, ofType } };
    const changing = put(typeId, STRICTER, using);
    await reached.promise;
    now.mockRestore();
    expect((await changeOf(typeId))!.leaseUntil).toBeGreaterThanOrEqual(startedAt + 50_000 + deps.config.LEASE_MS);
    const shown = async () => (await getMemoryType(deps, { id: typeId }, context)).memoryType;
    expect(await shown()).toMatchObject({ state: 'changing', change: { state: 'running', checked: 32, of: 40 } });
    released.resolve();
    await changing;
    expect(await shown()).toMatchObject({ state: 'active', change: { state: 'done', checked: 40, of: 40 } });
  });

  it('a deletion that was read before its object got references takes them with it', async () => {
    const [targetId, typeId] = [await createType(), await createType()];
    const { type } = (await typeOf(targetId))!;
    const target = await create(targetId, 1);
    const content = JSON.stringify({ price: 1, to: target.key });
    const request = CreateMemoryObjectRequest.fromPartial({ typeId, key: newId(), content });
    const { id } = (await createMemoryObject(deps, request, context)).memoryObject!;
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const groupedWrites: Deps['groupedWrites'] = async (request) => {
      reached.resolve();
      await released.promise;
      return deps.groupedWrites(request);
    };
    const late = { ...deps, groupedWrites };
    const relations = [{ name: 'to', targetType: type, path: '/to', cardinality: 'one' }];
    const change = UpdateMemoryTypeRequest.fromPartial({ pathId: typeId, relations, updateMask: ['relations'] });
    // The deletion has seen the announcement, so no fence stops it.
    const reading = held();
    const changing = updateMemoryType(reading.using, change, context);
    await reading.reached;
    const deleting = deleteMemoryObject(late, { id, ifMatch: undefined }, context);
    await reached.promise;
    reading.release();
    expect((await changing).memoryType).toMatchObject({ version: 2, change: { state: 'done', checked: 1 } });
    released.resolve();
    await deleting;
    expect(await opened.store.find(context.principal.organizationId, REFERENCES, {})).toEqual([]);
    await deleteMemoryObject(deps, { id: target.id, ifMatch: undefined }, context);
  });

  it('a process that stops hands the work over at once', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const stopping = { ...(await openTestDeps(join(folder.path, 'memory.db'), 4, async () => opened)).deps };
    const change = held(stopping);
    const changing = put(typeId, STRICTER, change.using);
    await change.reached;
    const stopped = stopping.background.stop();
    change.release();
    await stopped;
    expect(await changing).toMatchObject({ outcome: 'ACCEPTED', memoryType: { state: 'changing' } });
    expect(await changeOf(typeId)).toMatchObject({ state: 'running', leaseUntil: 0 });
    await runJob();
    expect(await typeOf(typeId)).toMatchObject({ version: 2, state: 'active' });
    await stopping.counterShards.close();
  });

  it('a name that is taken meanwhile ends it', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const name = `t${newId()}`;
    const change = held();
    const request = { pathId: typeId, jsonSchema: STRICTER, type: name, updateMask: ['jsonSchema', 'type'] };
    const changing = updateMemoryType(change.using, UpdateMemoryTypeRequest.fromPartial(request), context);
    await change.reached;
    await createMemoryType(deps, CreateMemoryTypeRequest.fromPartial({ type: name, jsonSchema: '{}' }), context);
    change.release();
    expect((await errorOf(changing)).reason).toBe('ALREADY_EXISTS');
    expect(await typeOf(typeId)).toMatchObject({ version: 1, state: 'active', next: null });
  });
});

describe('while a type is deleted with its objects', () => {
  it('a process that stops before one of its batches hands the work over at once', async () => {
    const typeId = await createType();
    await create(typeId, 1);
    const stopping = { ...(await openTestDeps(join(folder.path, 'memory.db'), 4, async () => opened)).deps };
    let stopped: Promise<void> | undefined;
    const groupedWrites: Deps['groupedWrites'] = (request) => {
      stopped = stopping.background.stop();
      return stopping.groupedWrites(request);
    };
    expect(await cascade(typeId, { ...stopping, groupedWrites })).toMatchObject({ outcome: 'ACCEPTED' });
    await stopped;
    expect(await changeOf(typeId)).toMatchObject({ state: 'running', checked: 0, leaseUntil: 0 });
    await runJob();
    expect(await typeOf(typeId)).toBeUndefined();
    await stopping.counterShards.close();
  });

  it('nothing is created or changed in it; a read and a deletion work', async () => {
    const typeId = await createType();
    const { id } = await create(typeId, 1);
    const deletion = held();
    const deleting = cascade(typeId, deletion.using);
    await deletion.reached;
    expect((await errorOf(create(typeId, 1))).reason).toBe('TYPE_CHANGING');
    expect((await errorOf(patch(id, 2))).reason).toBe('TYPE_CHANGING');
    expect((await errorOf(put(typeId))).reason).toBe('TYPE_CHANGING');
    deletion.release();
    expect(await deleting).toMatchObject({ outcome: 'DONE', deleted: { id: typeId } });
    expect(await typeOf(typeId)).toBeUndefined();
    expect(await changeOf(typeId)).toBeUndefined();
    expect(await eventsOf(`types/${typeId}`)).toEqual(['memory.type.created.v1 1', 'memory.type.deleted.v1 2']);
    expect((await eventsOf(`objects/${id}`)).at(-1)).toBe('memory.object.deleted.v1 2');
  });

  it('a cancellation keeps what is not deleted yet', async () => {
    const typeId = await createType();
    const { id } = await create(typeId, 1);
    const deletion = held();
    const deleting = cascade(typeId, deletion.using);
    await deletion.reached;
    await cancelMemoryTypeChange(deps, { id: typeId }, context);
    deletion.release();
    expect((await errorOf(deleting)).reason).toBe('CONFLICT');
    await patch(id, 2);
  });

  it('another process goes on when its process dies, and each object is deleted once', async () => {
    const typeId = await createType();
    const ids = await Promise.all(Array.from({ length: 60 }, async (_, n) => (await create(typeId, n)).id));
    const dead = held();
    const deleting = cascade(typeId, dead.using);
    await dead.reached;
    await expireLease(typeId);
    await runJob();
    dead.release();
    await deleting;
    expect(await typeOf(typeId)).toBeUndefined();
    for (const id of ids)
      expect(await eventsOf(`objects/${id}`)).toEqual(['memory.object.created.v1 1', 'memory.object.deleted.v1 2']);
  });
});

it('lets one organization change at most eight types at once', async () => {
  const changes = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const typeId = await createType();
      await create(typeId, 1);
      const change = held();
      const changing = put(typeId, STRICTER, change.using);
      await change.reached;
      return { changing, release: change.release };
    }),
  );
  const ninth = await createType();
  await create(ninth, 1);
  expect((await errorOf(put(ninth))).reason).toBe('TOO_MANY_REQUESTS');
  for (const { release } of changes) release();
  await Promise.all(changes.map(({ changing }) => changing));
  await put(ninth);
});
