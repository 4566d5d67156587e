import { join } from 'node:path';
import fc from 'fast-check';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { insert, remove, update, type OpenStore } from 'platform/store/store.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { Deps } from '../src/deps.ts';
import { memoryBytesJob } from '../src/jobs/count-bytes.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { objectBytes } from '../src/objects/rules.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { typeBytes } from '../src/types/rules.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { USAGE } from '../src/usage/store.ts';
import { errorOf } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

const DRAWS = process.env.TEST_ENGINES ? 5 : 40;

// Engines differ in the number of counter shards.
describe.each([1, 4])('stored bytes, with %i counter shards', (shardCount) => {
  const folder = temporaryFolder();
  let opened: OpenStore;
  let deps: Deps;
  beforeAll(async () => {
    ({ deps, opened } = await openTestDeps(join(folder.path, `memory-${shardCount}.db`), shardCount));
  });
  afterAll(async () => {
    await deps.counterShards.close();
    await opened.close();
    folder.remove();
  });

  /** The RPCs as one principal calls them. */
  function callsOf(principal: Principal, using = deps) {
    const context = () => contextOf(principal);
    return {
      organizationId: principal.organizationId,
      createType: async (given: Partial<CreateMemoryTypeRequest> = {}) =>
        (
          await createMemoryType(
            using,
            CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: '{}', ...given }),
            context(),
          )
        ).memoryType!.id,
      putType: (pathId: string, body: Partial<UpdateMemoryTypeRequest>) =>
        updateMemoryType(
          using,
          UpdateMemoryTypeRequest.fromPartial({ ...body, pathId, updateMask: Object.keys(body) }),
          context(),
        ),
      deleteType: (id: string) => deleteMemoryType(using, { id }, context()),
      create: async (typeId: string, text: string, key = newId()) =>
        (
          await createMemoryObject(
            using,
            CreateMemoryObjectRequest.fromPartial({ typeId, key, content: JSON.stringify({ text }) }),
            context(),
          )
        ).memoryObject!.id,
      patch: (pathId: string, text: string) =>
        updateMemoryObject(
          using,
          UpdateMemoryObjectRequest.fromPartial({
            pathId,
            content: JSON.stringify({ text }),
            updateMask: ['content'],
          }),
          context(),
        ),
      deleteObject: (id: string) => deleteMemoryObject(using, { id }, context()),
    };
  }
  const storedOf = async (organizationId: string) => [
    ...(await opened.store.find(organizationId, TYPES, {})).map((type) => ({ is: type.bytes, size: typeBytes(type) })),
    ...(await opened.store.find(organizationId, OBJECTS, {})).map((object) => ({
      is: object.bytes,
      size: objectBytes(object),
    })),
  ];
  const sum = (numbers: (number | undefined)[]): number => numbers.reduce<number>((total, n) => total + (n ?? 0), 0);
  /** Expects that the counter, the documents' own numbers and their sizes agree. @returns the counter */
  async function expectCounted(organizationId: string): Promise<number> {
    const stored = await storedOf(organizationId);
    const counted = await deps.usage.storedBytes(organizationId);
    expect(stored.map(({ is }) => is)).toEqual(stored.map(({ size }) => size));
    expect(counted).toBe(sum(stored.map(({ size }) => size)));
    return counted;
  }
  const count = () => memoryBytesJob(deps).run(new AbortController().signal);

  const text = fc.string({ unit: 'grapheme', maxLength: 300 });
  const actions = fc.record({
    action: fc.constantFrom('create', 'create', 'patch', 'delete', 'createType', 'putType', 'deleteType', 'forget'),
    target: fc.nat(),
    text,
  });

  it('are the sum of what is stored, after any creations, changes and deletions, also of concurrent requests', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(actions, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
        async (batches) => {
          const calls = callsOf(serverToken(newId(), { limits: { memory_bytes: 200_000 } }));
          const { organizationId } = calls;
          await calls.createType();
          for (const batch of batches) {
            const types = await opened.store.find(organizationId, TYPES, {});
            const objects = await opened.store.find(organizationId, OBJECTS, {});
            const act = async ({ action, target, text: given }: (typeof batch)[number]): Promise<unknown> => {
              const type = types[target % types.length]?._id ?? newId();
              const object = objects[target % objects.length]?._id ?? newId();
              if (action === 'create') return calls.create(type, given);
              if (action === 'patch') return calls.patch(object, given);
              if (action === 'delete') return calls.deleteObject(object);
              if (action === 'createType') return calls.createType({ description: given });
              if (action === 'putType') return calls.putType(type, { description: given });
              if (action === 'deleteType') return calls.deleteType(type);
              return forget(organizationId, object);
            };
            for (const outcome of await Promise.allSettled(batch.map(act)))
              if (outcome.status === 'rejected')
                expect(['NOT_FOUND', 'TYPE_IN_USE', 'TIER_LIMIT']).toContain(outcome.reason.reason);
          }
          expect(await deps.usage.storedBytes(organizationId)).toBeLessThanOrEqual(200_000);
          expect(await deps.usage.storedBytes(organizationId)).toBe(
            sum((await storedOf(organizationId)).map(({ is }) => is)),
          );
          await count();
          await expectCounted(organizationId);
        },
      ),
      { numRuns: DRAWS },
    );
  });

  /** Makes an object one of a release before byte counts: it has no number of its own, and is not counted. */
  async function forget(organizationId: string, id: string): Promise<void> {
    const object = await opened.store.findOne(organizationId, OBJECTS, { _id: id });
    if (object?.bytes === undefined) return;
    const { bytes, ...old } = object;
    await opened.store
      .apply(organizationId, [
        remove(OBJECTS, { _id: id, revision: object.revision, bytes }),
        update(USAGE, { _id: `${organizationId}:0` }, { increment: { bytes: -bytes } }),
      ])
      .then(() => opened.store.apply(organizationId, [insert(OBJECTS, old)]))
      .catch(() => undefined);
  }

  it('never exceed the limit of the tier, even by concurrent requests, and are used up to it', async () => {
    const calls = callsOf(serverToken(newId(), { limits: { memory_bytes: 100_000 } }));
    const typeId = await calls.createType();
    const texts = Array.from({ length: 40 }, (_, n) => 'x'.repeat(700 * (1 + (n % 7))));
    const outcomes = await Promise.all(
      texts.map((given) =>
        calls.create(typeId, given).then(
          () => 'created',
          ({ reason, facts }) => `${reason} ${facts.limit}`,
        ),
      ),
    );
    expect(new Set(outcomes)).toEqual(new Set(['created', 'TIER_LIMIT memory_bytes']));
    const used = await expectCounted(calls.organizationId);
    expect(used).toBeLessThanOrEqual(100_000);
    // no object that was refused would fit
    const sizes = texts.map((given) => objectBytes({ content: JSON.stringify({ text: given }), key: newId() }));
    const refused = sizes.filter((_, place) => outcomes[place] !== 'created');
    expect(used).toBeGreaterThan(100_000 - Math.min(...refused));

    const rest = 100_000 - used - objectBytes({ content: '{"text":""}', key: newId() });
    if (rest >= 0) await calls.create(typeId, 'x'.repeat(rest));
    expect(await errorOf(calls.createType())).toMatchObject({
      reason: 'TIER_LIMIT',
      facts: { limit: 'memory_bytes' },
      message: 'The licence tier allows at most 100000 memory bytes',
    });
  });

  it('above the limit, let an object or type become smaller or vanish, and refuse what is larger', async () => {
    const principal = serverToken(newId(), { limits: { memory_bytes: 1_000_000 } });
    const typeId = await callsOf(principal).createType({ description: 'd'.repeat(1_000) });
    const ids = [
      await callsOf(principal).create(typeId, 'x'.repeat(2_000)),
      await callsOf(principal).create(typeId, 'x'.repeat(2_000)),
    ];
    const lowered = callsOf({ ...principal, limits: { memory_bytes: 1 } });
    const refused = { reason: 'TIER_LIMIT', facts: { limit: 'memory_bytes' } };
    expect(await errorOf(lowered.patch(ids[0]!, 'x'.repeat(2_001)))).toMatchObject(refused);
    expect(await errorOf(lowered.create(typeId, ''))).toMatchObject(refused);
    expect(await errorOf(lowered.putType(typeId, { description: 'd'.repeat(1_001) }))).toMatchObject(refused);
    await lowered.patch(ids[0]!, 'y'.repeat(2_000));
    await lowered.patch(ids[0]!, '');
    await lowered.putType(typeId, { description: 'd' });
    await expectCounted(principal.organizationId);
    for (const id of ids) await lowered.deleteObject(id);
    await lowered.deleteType(typeId);
    expect(await expectCounted(principal.organizationId)).toBe(0);
  });

  it('of a store of an earlier release are counted once, however often the job begins again', async () => {
    const calls = callsOf(serverToken(newId()));
    const { organizationId } = calls;
    const typeId = await calls.createType();
    const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => calls.create(typeId, 'x'.repeat(n))));
    const right = await expectCounted(organizationId);
    for (const id of ids) await forget(organizationId, id);
    const { bytes: _, ...type } = (await opened.store.findOne(organizationId, TYPES, {}))!;
    const usage = await opened.store.find(organizationId, USAGE, {});
    await opened.store.apply(organizationId, [
      remove(TYPES, { _id: typeId }),
      ...usage.map(({ _id }) => remove(USAGE, { _id })),
    ]);
    await opened.store.apply(organizationId, [
      insert(TYPES, type),
      ...usage.map(({ bytes: _bytes, ...record }) => insert(USAGE, record)),
    ]);

    // What happens to an object before it is counted is counted right, too.
    await calls.deleteObject(ids[0]!);
    await calls.patch(ids[1]!, 'longer than it was');
    const lost = objectBytes({ content: '{"text":""}', key: ids[0]! });
    const gained = 'longer than it was'.length - 1;

    // The process ends before its second batch is written, and another one begins again.
    let batches = 0;
    const dying = {
      ...deps,
      platformStore: {
        ...deps.platformStore,
        apply: (ops: Parameters<typeof deps.platformStore.apply>[0]) =>
          ++batches === 2 ? Promise.reject(new Error('killed')) : deps.platformStore.apply(ops),
      },
    };
    await expect(memoryBytesJob(dying).run(new AbortController().signal)).rejects.toThrow('killed');
    expect(await deps.usage.storedBytes(organizationId)).toBe(
      sum((await storedOf(organizationId)).map(({ is }) => is)),
    );
    await Promise.all([count(), count()]);
    expect(await expectCounted(organizationId)).toBe(right - lost + gained);
    expect(await count()).toBe(0);
  });

  it.each(['patched', 'deleted'])('of an uncounted object are counted once when it is %s meanwhile', async (what) => {
    const principal = serverToken(newId());
    const calls = callsOf(principal);
    const typeId = await calls.createType();
    const id = await calls.create(typeId, 'old');
    await forget(principal.organizationId, id);
    let countedMeanwhile = 0;
    const header: typeof deps.types.header = async (...args) => {
      const found = await deps.types.header(...args);
      countedMeanwhile += await count();
      return found;
    };
    const slow = callsOf(principal, { ...deps, types: { ...deps.types, header } });
    await (what === 'patched' ? slow.patch(id, 'new and longer') : slow.deleteObject(id));
    expect(countedMeanwhile).toBe(1);
    await expectCounted(principal.organizationId);
  });
});
