import { join } from 'node:path';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  ListMemoryObjectsRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import type { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { config } from '../src/config.ts';
import { openDeps, type Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { listMemoryObjects } from '../src/objects/list-memory-objects.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { TYPES, type MemoryTypeRecord } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { errorOf, SCHEMA } from './fixture.ts';

/** Of all schemas of an organization: the least that the setting allows. */
const SCHEMAS_MAX_BYTES = 65_536;
const SCHEMA_BYTES = 10_000;

const folder = temporaryFolder();
let opened: OpenStore | undefined;
let replicas: Deps[];
let context: CallContext;

/** Replicas share the store and nothing else. */
const openReplica = () =>
  openDeps({
    config: {
      ...readConfig(config, { MEMORY_SCHEMAS_MAX_BYTES: String(SCHEMAS_MAX_BYTES) }),
      LEASE_MS: 120_000,
    },
    clock: systemClock,
    log: makeLog('memory', 'silent'),
    instanceId: newId(),
    openStore: async (collections: readonly Collection<never>[]) => ({
      ...(opened ??= await openTestStore(join(folder.path, 'memory.db'), [...collections, OUTBOX, LEASES])),
      counterShards: 4,
    }),
  } as unknown as Parameters<typeof openDeps>[0]);

beforeAll(async () => {
  replicas = [await openReplica(), await openReplica(), await openReplica()];
});
afterAll(async () => {
  for (const { counterShards } of replicas) await counterShards.close();
  await opened!.close();
  folder.remove();
});
beforeEach(() => {
  context = {
    principal: serverToken(newId()),
    caller: 'gateway',
    requestId: newId(),
    signal: new AbortController().signal,
    deadline: Date.now() + 60_000,
  };
});

/** JSON Schema of this many bytes. */
function schemaOf(bytes: number): string {
  const text = (description: string) => JSON.stringify({ ...SCHEMA, description });
  return text('x'.repeat(bytes - text('').length));
}
const createType = async (deps: Deps, jsonSchema = JSON.stringify(SCHEMA)): Promise<string> => {
  const request = CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema });
  return (await createMemoryType(deps, request, context)).memoryType!.id;
};
const create = async (deps: Deps, typeId: string): Promise<string> => {
  const request = CreateMemoryObjectRequest.fromPartial({ typeId, key: newId(), content: '{"price":1}' });
  return (await createMemoryObject(deps, request, context)).memoryObject!.id;
};
const patch = async (deps: Deps, pathId: string, content = '{"price":2}') => {
  const request = UpdateMemoryObjectRequest.fromPartial({ pathId, content, updateMask: ['content'] });
  return (await updateMemoryObject(deps, request, context)).memoryObject!;
};
const put = async (deps: Deps, pathId: string, jsonSchema: string) => {
  const request = UpdateMemoryTypeRequest.fromPartial({ pathId, jsonSchema, updateMask: ['jsonSchema'] });
  return (await updateMemoryType(deps, request, context)).memoryType!;
};
const remove = (deps: Deps, id: string) => deleteMemoryObject(deps, { id }, context);
const removeType = (deps: Deps, id: string) => deleteMemoryType(deps, { id }, context);

type Reads = 'byId' | 'find' | 'ofType';
/** The replica, in which the first call of this read waits for `meanwhile` before it returns. */
function pausedAfter(
  deps: Deps,
  noun: 'types' | 'objects' | 'fences',
  read: Reads,
  meanwhile: () => Promise<unknown>,
): Deps {
  const reads = deps[noun] as unknown as Record<Reads, (...args: unknown[]) => Promise<unknown>>;
  let left = 1;
  const paused = async (...args: unknown[]) => {
    const found = await reads[read](...args);
    if (left-- > 0) await meanwhile();
    return found;
  };
  return { ...deps, [noun]: { ...deps[noun], [read]: paused } };
}

/** What was published of the subject: type and revision of each event, in order. */
async function published(subject: string): Promise<string[]> {
  const rows = await opened!.platformStore.find(OUTBOX, { organizationId: context.principal.organizationId });
  return rows
    .map(({ event }) => JSON.parse(event) as CloudEvent)
    .filter((event) => event.subject === subject)
    .map(({ type, sequence }) => `${type} ${sequence}`);
}

describe('a write that was paused between its read and its write, while another replica wrote the object', () => {
  it('is done again on top of the other update', async () => {
    const [one, other] = replicas as [Deps, Deps];
    const id = await create(one, await createType(one));
    const meanwhile = async () => expect(await patch(other, id, '{"price":2}')).toMatchObject({ revision: 2 });
    const late = await patch(pausedAfter(one, 'objects', 'byId', meanwhile), id, '{"price":3}');
    expect(late).toMatchObject({ revision: 3, content: '{"price":3}' });
    const stored = await opened!.store.findOne(context.principal.organizationId, OBJECTS, { _id: id });
    expect(stored).toMatchObject({ revision: 3, content: '{"price":3}' });
    expect(await published(`objects/${id}`)).toEqual([
      'memory.object.created.v1 1',
      'memory.object.updated.v1 2',
      'memory.object.updated.v1 3',
    ]);
  });

  it('deletes what the other update made, with the next revision', async () => {
    const [one, other] = replicas as [Deps, Deps];
    const id = await create(one, await createType(one));
    await remove(
      pausedAfter(one, 'objects', 'byId', () => patch(other, id)),
      id,
    );
    expect((await published(`objects/${id}`)).at(-1)).toBe('memory.object.deleted.v1 3');
  });

  it('does not bring back what the other replica deleted', async () => {
    const [one, other] = replicas as [Deps, Deps];
    const id = await create(one, await createType(one));
    const late = patch(
      pausedAfter(one, 'objects', 'byId', () => remove(other, id)),
      id,
    );
    expect((await errorOf(late)).reason).toBe('NOT_FOUND');
  });

  it('is done again on top of the other change of a type', async () => {
    const [one, other] = replicas as [Deps, Deps];
    const id = await createType(one);
    const late = put(
      pausedAfter(one, 'types', 'byId', () => put(other, id, '{"title":"a"}')),
      id,
      '{"title":"b"}',
    );
    expect(await late).toMatchObject({ version: 3, jsonSchema: '{"title":"b"}' });
    expect((await published(`types/${id}`)).at(-1)).toBe('memory.type.updated.v1 3');
  });
});

describe('one turn for writes of one thing, its id in any case', () => {
  /** Runs both on one replica, the second while the first is paused after its read; logs what they do in order. */
  async function logOf(
    noun: 'types' | 'objects',
    first: (deps: Deps) => Promise<unknown>,
    second: (deps: Deps) => Promise<unknown>,
  ): Promise<string[]> {
    const deps = replicas[0]!;
    const log: string[] = [];
    const logged = (name: string, using: Deps): Deps => {
      const { byId, change } = using[noun] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
      const reads = (...args: unknown[]) => (log.push(`${name} reads`), byId!(...args));
      const writes = (...args: unknown[]) => change!(...args).then(() => log.push(`${name} has written`));
      const groupedWrites: Deps['groupedWrites'] = (request) =>
        using.groupedWrites(request).then(() => void log.push(`${name} has written`));
      return { ...using, groupedWrites, [noun]: { ...using[noun], byId: reads, change: writes } };
    };
    const release = Promise.withResolvers<void>();
    const paused = Promise.withResolvers<void>();
    const wait = () => (paused.resolve(), release.promise);
    const writing = first(logged('first', pausedAfter(deps, noun, 'byId', wait)));
    await paused.promise;
    const waiting = second(logged('second', deps));
    // the second would have had the time to read by now
    await patch(deps, await create(deps, await createType(deps)));
    release.resolve();
    await Promise.all([writing, waiting]);
    return log;
  }
  const IN_TURN = ['first reads', 'first has written', 'second reads'];

  it.each([
    ['an update', (deps: Deps, id: string) => patch(deps, id, '{"price":3}')],
    ['a deletion', remove],
  ])('%s of an object waits for an update', async (_what, write) => {
    const deps = replicas[0]!;
    const id = await create(deps, await createType(deps));
    const log = await logOf(
      'objects',
      (using) => patch(using, id),
      (using) => write(using, id.toUpperCase()),
    );
    expect(log.slice(0, 3)).toEqual(IN_TURN);
  });

  it.each([
    ['a change', (deps: Deps, id: string) => put(deps, id, '{"title":"b"}')],
    ['a deletion', removeType],
  ])('%s of a type waits for a change', async (_what, write) => {
    const id = await createType(replicas[0]!);
    const log = await logOf(
      'types',
      (using) => put(using, id, '{"title":"a"}'),
      (using) => write(using, id.toUpperCase()),
    );
    expect(log.slice(0, 3)).toEqual(IN_TURN);
  });
});

describe('the limit for all schemas of an organization', () => {
  const storedBytes = async (): Promise<number> =>
    (await opened!.store.find(context.principal.organizationId, TYPES, {})).reduce(
      (sum, { jsonSchema }) => sum + Buffer.byteLength(jsonSchema),
      0,
    );
  const outcomesOf = async (writes: Promise<unknown>[]) => {
    const outcomes = await Promise.allSettled(writes);
    const reasons = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.reason as string] : []));
    return { accepted: outcomes.length - reasons.length, reasons: new Set(reasons) };
  };

  it('holds when several replicas create a type at once of which only one has room', async () => {
    const room = SCHEMAS_MAX_BYTES % SCHEMA_BYTES;
    for (let n = 1; n < SCHEMAS_MAX_BYTES / SCHEMA_BYTES - 1; n++)
      await createType(replicas[0]!, schemaOf(SCHEMA_BYTES));
    const allHaveChecked = Promise.withResolvers<void>();
    let checked = 0;
    /** The replica, which writes only when all have checked the limit. */
    const together = (deps: Deps): Deps => {
      const addType = deps.usage.addType as (...args: unknown[]) => Promise<unknown>;
      const check = async (...args: unknown[]) => {
        const ops = await addType(...args);
        if (++checked === replicas.length) allHaveChecked.resolve();
        await allHaveChecked.promise;
        return ops;
      };
      return { ...deps, usage: { ...deps.usage, addType: check as Deps['usage']['addType'] } };
    };
    const writes = replicas.map((deps) => createType(together(deps), schemaOf(SCHEMA_BYTES)));
    expect(await outcomesOf(writes)).toEqual({ accepted: 1, reasons: new Set(['TIER_LIMIT']) });
    expect(await storedBytes()).toBe(SCHEMAS_MAX_BYTES - room);
  });

  it('holds when many types are created, and then many schemas grow, at once on several replicas', async () => {
    const ids = await Promise.all(Array.from({ length: 24 }, (_, n) => createType(replicas[n % 3]!, schemaOf(100))));
    const grown = 12_000;
    const { accepted, reasons } = await outcomesOf(ids.map((id, n) => put(replicas[n % 3]!, id, schemaOf(grown))));
    expect(accepted).toBe(Math.floor((SCHEMAS_MAX_BYTES - ids.length * 100) / (grown - 100)));
    expect(reasons).toEqual(new Set(['TIER_LIMIT']));
    expect(await storedBytes()).toBe(ids.length * 100 + accepted * (grown - 100));
  });
});

describe('the caps of a tier, raced by 64 creators on several replicas', () => {
  const limit = (limits: Record<string, number>) => {
    context = { ...context, principal: { ...context.principal, limits } };
  };
  const race = async (write: (deps: Deps) => Promise<unknown>) => {
    const outcomes = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        write(replicas[n % 3]!).then(
          () => 'created',
          ({ reason, facts }: ServiceError) => `${reason} ${String(facts.limit)}`,
        ),
      ),
    );
    return { created: outcomes.filter((one) => one === 'created').length, kinds: new Set(outcomes) };
  };

  it('are filled exactly; after a tier is lowered what exists is read, and nothing is created', async () => {
    limit({ memory_types: 20 });
    const types = { created: 20, kinds: new Set(['created', 'TIER_LIMIT memory_types']) };
    expect(await race((deps) => createType(deps))).toEqual(types);
    const [{ _id: typeId }] = (await opened!.store.find(context.principal.organizationId, TYPES, {})) as [
      MemoryTypeRecord,
    ];
    limit({ memory_objects: 20 });
    const objects = { created: 20, kinds: new Set(['created', 'TIER_LIMIT memory_objects']) };
    expect(await race((deps) => create(deps, typeId))).toEqual(objects);

    limit({ memory_types: 3, memory_objects: 3 });
    const request = ListMemoryObjectsRequest.fromPartial({ typeId });
    expect((await listMemoryObjects(replicas[1]!, request, context)).total).toBe(20);
    expect(await errorOf(createType(replicas[1]!))).toMatchObject({ reason: 'TIER_LIMIT' });
    expect(await errorOf(create(replicas[1]!, typeId))).toMatchObject({ reason: 'TIER_LIMIT' });
  });
});
