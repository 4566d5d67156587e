import { join } from 'node:path';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { ExpectationFailedError, remove, type OpenStore } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { openGroupedWrites } from '../src/objects/grouped-writes.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { writeObjects } from '../src/objects/write-objects.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

describe('writes of one turn', () => {
  const folder = temporaryFolder();
  let opened: OpenStore;
  let deps: Deps;
  /** For each batch, how many of its operations each collection has. */
  let batches: Record<string, number>[];
  beforeAll(async () => {
    ({ deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 1));
    const apply: Deps['objects']['apply'] = (organizationId, ops) => {
      const ofCollection = Object.entries(Object.groupBy(ops, ({ collection }) => collection.name));
      batches.push(Object.fromEntries(ofCollection.map(([name, some]) => [name, some!.length])));
      return deps.objects.apply(organizationId, ops);
    };
    deps = { ...deps, groupedWrites: openGroupedWrites({ ...deps, objects: { ...deps.objects, apply } }) };
  });
  beforeEach(() => (batches = []));
  afterAll(async () => {
    await deps.counterShards.close();
    await opened.close();
    folder.remove();
  });

  const limited = (limits: Record<string, number>): Principal => ({ ...serverToken(newId()), limits });
  const createType = async (principal: Principal): Promise<string> => {
    const request = CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: '{}' });
    return (await createMemoryType(deps, request, contextOf(principal))).memoryType!.id;
  };
  const create = async (
    principal: Principal,
    typeId: string,
    { key = newId(), signal = new AbortController().signal, using = deps } = {},
  ): Promise<string> => {
    const request = CreateMemoryObjectRequest.fromPartial({ typeId, key, content: '{"a":1}' });
    return (await createMemoryObject(using, request, { ...contextOf(principal), signal })).memoryObject!.id;
  };
  /** Deps with which so many requests reach their writes in one turn, however long each reads and checks before. */
  const depsThatGather = (count: number) => {
    let missing = count;
    const all = Promise.withResolvers<void>();
    all.promise.catch(() => undefined);
    const groupedWrites: Deps['groupedWrites'] = async (request) => {
      if (--missing === 0) all.resolve();
      await all.promise;
      return deps.groupedWrites(request);
    };
    /** Waits for these requests. One that ends before it writes fails those that wait for it. */
    const allOf = async (requests: Promise<unknown>[]): Promise<void> => {
      const early = () => all.reject(new Error(`${missing} of ${count} requests have not come to their writes`));
      for (const request of requests) request.then(early, early);
      await Promise.all(requests).finally(() => Promise.allSettled(requests));
    };
    return { using: { ...deps, groupedWrites }, allOf };
  };
  const countsOf = async ({ organizationId }: Principal, typeId: string): Promise<number[]> => [
    await deps.fences.countObjects(organizationId, [typeId]),
    await deps.usage.objectCount(organizationId),
    await deps.objects.count(organizationId, { typeId }),
  ];
  const reasonsOf = (results: readonly PromiseSettledResult<unknown>[]): string[] =>
    results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as { reason: string }).reason] : []));

  it('are one batch, which writes the fence of a type and the counters once', async () => {
    const principal = limited({});
    const typeId = await createType(principal);
    const { using, allOf } = depsThatGather(20);
    await allOf(Array.from({ length: 20 }, () => create(principal, typeId, { using })));
    expect(batches).toEqual([{ objects: 20, outbox: 40, fences: 1, usage: 1 }]);
    expect(await countsOf(principal, typeId)).toEqual([20, 20, 20]);
  });

  it('of all kinds and of several types share it, with one fence for each type', async () => {
    const principal = limited({});
    const [one, two] = [await createType(principal), await createType(principal)];
    const [updated, deleted] = [await create(principal, one), await create(principal, two)];
    batches = [];
    const { using, allOf } = depsThatGather(3);
    const request = { id: updated, pathId: updated, content: '{"a":22}', updateMask: ['content'] } as never;
    await allOf([
      create(principal, one, { using }),
      updateMemoryObject(using, request, contextOf(principal)),
      deleteMemoryObject(using, { id: deleted, ifMatch: undefined }, contextOf(principal)),
    ]);
    expect(batches.map(({ fences, usage }) => ({ fences, usage }))).toEqual([{ fences: 2, usage: 1 }]);
    expect(await countsOf(principal, one)).toEqual([2, 2, 2]);
    expect(await countsOf(principal, two)).toEqual([0, 2, 0]);
  });

  it('of several organizations never share one', async () => {
    const principals = [limited({}), limited({})];
    const typeIds = await Promise.all(principals.map(createType));
    batches = [];
    await Promise.all(principals.map((principal, i) => create(principal, typeIds[i]!)));
    expect(batches).toHaveLength(2);
    for (const [i, principal] of principals.entries())
      expect(await countsOf(principal, typeIds[i]!)).toEqual([1, 1, 1]);
  });

  it('of many operations do not wait for each other in one long batch', async () => {
    const principal = limited({});
    const typeId = await createType(principal);
    const ids = await Promise.all([create(principal, typeId), create(principal, typeId), create(principal, typeId)]);
    const further = Array.from({ length: 1_100 }, () => remove(OBJECTS, { _id: newId() }, { optional: true }));
    const objects = await Promise.all(ids.map((id) => deps.objects.byId(principal.organizationId, id)));
    batches = [];
    const type = { name: 't', epoch: objects.length };
    const time = '2026-01-01T00:00:00.000Z';
    await Promise.all(
      objects.map((before) => writeObjects(deps, contextOf(principal), [{ before, time, type }], { further })),
    );
    expect(batches.map((batch) => batch.objects)).toEqual([1_101, 1_101, 1_101]);
    expect(await countsOf(principal, typeId)).toEqual([0, 0, 0]);
  });

  it('that are refused do not concern the others', async () => {
    const principal = limited({});
    const typeId = await createType(principal);
    const keys = ['a', 'b', 'a', 'c', 'b'];
    const results = await Promise.allSettled(keys.map((key) => create(principal, typeId, { key })));
    expect(reasonsOf(results)).toEqual(['ALREADY_EXISTS', 'ALREADY_EXISTS']);
    expect(await countsOf(principal, typeId)).toEqual([3, 3, 3]);
  });

  it('together stay within the limit of the tier, and those that fit are written', async () => {
    const principal = limited({ memory_objects: 7 });
    const typeId = await createType(principal);
    const results = await Promise.allSettled(Array.from({ length: 12 }, () => create(principal, typeId)));
    expect(reasonsOf(results)).toEqual(Array(5).fill('TIER_LIMIT'));
    expect(await countsOf(principal, typeId)).toEqual([7, 7, 7]);
  });

  it('are not carried out for a caller who has gone meanwhile', async () => {
    const principal = limited({});
    const typeId = await createType(principal);
    const gone = new AbortController();
    const using: Deps = { ...deps, groupedWrites: (request) => (gone.abort(), deps.groupedWrites(request)) };
    const results = await Promise.allSettled([
      create(principal, typeId, { using }),
      create(principal, typeId, { using, signal: gone.signal }),
      create(principal, typeId, { using }),
    ]);
    expect(reasonsOf(results)).toEqual(['CLIENT_GONE']);
    expect(await countsOf(principal, typeId)).toEqual([2, 2, 2]);
  });

  it('expect the fence as the one that has read the oldest state of its type', async () => {
    const principal = limited({});
    const typeId = await createType(principal);
    const { organizationId } = principal;
    const { signal } = contextOf(principal);
    await deps.fences.raise(organizationId, typeId, 5, signal);
    const write = (epoch: number) => {
      const id = newId();
      const time = '2026-01-01T00:00:00.000Z';
      const state = { content: '{}', schemaVersion: 1, revision: 1, bytes: 2, createdAt: time, updatedAt: time };
      const after = { _id: id, organizationId, typeId, key: id, ...state };
      const writes = [{ after, time, type: { name: 't', epoch } }];
      return deps.groupedWrites({ principal, signal, writes, eventOps: [], further: [] });
    };
    const results = await Promise.allSettled([write(5), write(4), write(6)]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await countsOf(principal, typeId)).toEqual([2, 2, 2]);
    await expect(write(4)).rejects.toBeInstanceOf(ExpectationFailedError);
  });
});
