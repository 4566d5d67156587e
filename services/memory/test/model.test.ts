import { join } from 'node:path';
import fc from 'fast-check';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  ListMemoryObjectsRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { update, type OpenStore } from 'platform/store/store.ts';
import { cancelMemoryTypeChange } from '../src/changes/cancel-memory-type-change.ts';
import { TYPE_CHANGES } from '../src/changes/store.ts';
import type { Deps } from '../src/deps.ts';
import { typeChangesJob } from '../src/jobs/type-changes.ts';
import { violationsOf } from '../src/objects/content.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { listMemoryObjects } from '../src/objects/list-memory-objects.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { REFERENCES } from '../src/references/store.ts';
import { wantedReferences } from '../src/references/wanted.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { relationsOf } from '../src/types/relations.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { USAGE } from '../src/usage/store.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

const folder = temporaryFolder();
let opened: OpenStore;
const replicas: Deps[] = [];
/** Draws the faults of a run. */
let chance: () => number = () => 1;
beforeAll(async () => {
  const { deps, ...rest } = await openTestDeps(join(folder.path, 'memory.db'), 4);
  opened = rest.opened;
  await deps.counterShards.close();
  for (let n = 0; n < 2; n++)
    replicas.push((await openTestDeps(join(folder.path, 'memory.db'), 4, async () => faulty(opened))).deps);
});
afterAll(async () => {
  for (const { counterShards } of replicas) await counterShards.close();
  await opened.close();
  folder.remove();
});

/** A store whose batches sometimes fail, and sometimes are applied although their answer is lost. */
function faulty(open: OpenStore): OpenStore {
  return {
    ...open,
    store: {
      ...open.store,
      async apply(organizationId, ops) {
        const drawn = chance();
        if (drawn < 0.04) throw new ServiceError('UNAVAILABLE');
        await open.store.apply(organizationId, ops);
        if (drawn < 0.08) throw new ServiceError('OUTCOME_UNKNOWN');
      },
    },
  };
}

const SCHEMAS = [
  '{}',
  '{"properties":{"n":{"maximum":5}}}',
  '{"required":["n"]}',
  '{"properties":{"n":{"minimum":3}}}',
];
const KEYS = ['a', 'b', 'c', 'd'];
const ON_DELETE = ['restrict', 'cascade', 'setNull'];
const NAMES = ['Person', 'Thing'];

type Command =
  | { do: 'create' | 'upsert' | 'patch'; type: number; key: number; n: number; owner: number }
  | { do: 'deleteObject'; type: number; key: number }
  | { do: 'schema'; type: number; schema: number; dryRun: boolean }
  | { do: 'relations'; type: number; target: number; onDelete: number; none: boolean }
  | { do: 'deleteType' | 'createType' | 'cancel'; type: number };
const key = fc.nat(KEYS.length - 1);
const type = fc.nat(NAMES.length - 1);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('create' as const, 'upsert' as const, 'patch' as const),
      ...{ type, key, n: fc.nat(9), owner: fc.nat(KEYS.length) },
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deleteObject' as const), type, key }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('schema' as const), type, schema: fc.nat(3), dryRun: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('relations' as const),
      ...{ type, target: type, onDelete: fc.nat(2), none: fc.boolean() },
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('deleteType' as const, 'createType' as const, 'cancel' as const),
      type,
    }),
  },
);

/** Runs one command on a replica. What a client may be told is no fault of the test: every refusal is one. */
async function run(deps: Deps, context: CallContext, given: Command): Promise<void> {
  const name = NAMES[given.type]!;
  const { organizationId } = context.principal;
  const typeId = async () => (await deps.types.byName(organizationId, name, {}))?._id ?? newId();
  const objectId = async (at: number) =>
    (await deps.objects.byKey(organizationId, await typeId(), KEYS[at]!))?._id ?? newId();
  switch (given.do) {
    case 'createType':
      return void (await createMemoryType(
        deps,
        CreateMemoryTypeRequest.fromPartial({ type: name, jsonSchema: '{}' }),
        context,
      ));
    case 'deleteType':
      return void (await deleteMemoryType(deps, { id: await typeId(), cascade: true, ifMatch: undefined }, context));
    case 'cancel':
      return void (await cancelMemoryTypeChange(deps, { id: await typeId() }, context));
    case 'schema': {
      const body = { pathId: await typeId(), jsonSchema: SCHEMAS[given.schema]!, updateMask: ['jsonSchema'] };
      const request = UpdateMemoryTypeRequest.fromPartial({ ...body, dryRun: given.dryRun });
      return void (await updateMemoryType(deps, request, context));
    }
    case 'relations': {
      const owner = {
        name: 'owner',
        targetType: NAMES[given.target]!,
        path: '/owner',
        cardinality: 'one',
        onDelete: ON_DELETE[given.onDelete]!,
      };
      const body = { pathId: await typeId(), relations: given.none ? [] : [owner], updateMask: ['relations'] };
      return void (await updateMemoryType(deps, UpdateMemoryTypeRequest.fromPartial(body), context));
    }
    case 'deleteObject':
      return void (await deleteMemoryObject(deps, { id: await objectId(given.key), ifMatch: undefined }, context));
    default: {
      const owner = KEYS[given.owner];
      const content = JSON.stringify({ n: given.n, ...(owner !== undefined && { owner }) });
      if (given.do === 'patch') {
        const body = { pathId: await objectId(given.key), content, updateMask: ['content'] };
        return void (await updateMemoryObject(deps, UpdateMemoryObjectRequest.fromPartial(body), context));
      }
      const body = { type: name, key: KEYS[given.key]!, content, upsert: given.do === 'upsert' };
      return void (await createMemoryObject(deps, CreateMemoryObjectRequest.fromPartial(body), context));
    }
  }
}

const REFUSALS = new Set<string>([
  ...['NOT_FOUND', 'ALREADY_EXISTS', 'INVALID_CONTENT', 'INVALID_REQUEST', 'OBJECT_IN_USE', 'TYPE_IN_USE', 'CONFLICT'],
  ...['SCHEMA_INCOMPATIBLE', 'TYPE_CHANGING', 'UNAVAILABLE', 'OUTCOME_UNKNOWN'],
]);

/** What is wrong with what the store holds of the organization, when nothing is under way. */
async function wrongIn(context: CallContext): Promise<unknown[]> {
  const { organizationId } = context.principal;
  const { store, platformStore } = opened;
  const [types, objects, references, usage, outbox] = [
    await store.find(organizationId, TYPES, {}),
    await store.find(organizationId, OBJECTS, {}),
    await store.find(organizationId, REFERENCES, {}),
    await store.find(organizationId, USAGE, {}),
    await platformStore.find(OUTBOX, { organizationId }),
  ];
  const wrong: unknown[] = [];
  const byId = new Map(objects.map((object) => [object._id, object]));
  for (const object of objects) {
    const type = types.find(({ _id }) => _id === object.typeId);
    if (!type) {
      wrong.push(['no type', object]);
      continue;
    }
    const content = parseJson(object.content) as Record<string, unknown>;
    const { violations } = violationsOf(replicas[0]!.schemas, type, content);
    if (violations.length > 0) wrong.push(['invalid', object.content, type.jsonSchema]);
    const { wanted, violations: malformed } = wantedReferences(relationsOf(type), content);
    if (malformed.length > 0) wrong.push(['malformed reference', object.content]);
    for (const { relation, key: targetKey } of wanted) {
      const target = objects.find((one) => one.typeId === relation.targetTypeId && one.key === targetKey);
      const isRow = references.some(
        ({ sourceId, relationId, targetId }) =>
          sourceId === object._id && relationId === relation.id && targetId === target?._id,
      );
      if (!target || (target !== object && !isRow)) wrong.push(['no target or no row', object, relation]);
    }
    const own = references.filter(({ sourceId }) => sourceId === object._id).length;
    const others = references.filter(({ targetId }) => targetId === object._id).length;
    if (own !== (object.references ?? 0) || others !== (object.referrers ?? 0))
      wrong.push(['miscounted references', object, own, others]);
  }
  for (const { sourceId, targetId } of references)
    if (!byId.has(sourceId) || !byId.has(targetId)) wrong.push(['row without an end', sourceId, targetId]);
  for (const type of types) {
    if (type.state !== 'active' || type.next) wrong.push(['not at rest', type]);
    const pointing = types.filter(({ relationTargets = [] }) => relationTargets.includes(type._id)).length;
    if (pointing !== (type.dependents ?? 0)) wrong.push(['miscounted dependents', type, pointing]);
    const request = ListMemoryObjectsRequest.fromPartial({ typeId: type._id });
    const { total, items } = await listMemoryObjects(replicas[1]!, request, context);
    const count = objects.filter(({ typeId }) => typeId === type._id).length;
    if (total !== count || items.length !== count) wrong.push(['wrong total', type.type, total, count]);
  }
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
  const counted = [
    sum(usage.map((one) => one.objects)) - objects.length,
    sum(usage.map((one) => one.types)) - types.length,
    sum(usage.map((one) => one.bytes ?? 0)) - sum([...types, ...objects].map(({ bytes }) => bytes ?? 0)),
  ];
  if (counted.some((difference) => difference !== 0)) wrong.push(['wrong usage', counted]);
  const revisions = new Map(
    [...types.map((one) => ['types', one] as const), ...objects.map((one) => ['objects', one] as const)].map(
      ([noun, { _id, revision }]) => [`${noun}/${_id}`, revision],
    ),
  );
  const events = outbox
    .map(({ event }) => JSON.parse(event) as CloudEvent)
    .filter(({ type }) => type.startsWith('memory.'));
  for (const [subject, ofSubject] of Map.groupBy(events, (event) => event.subject)) {
    const last = ofSubject.at(-1)!;
    const isGapless = ofSubject.every(({ sequence }, index) => Number(sequence) === index + 1);
    const isDeleted = last.type.endsWith('.deleted.v1');
    if (!isGapless || (isDeleted ? revisions.has(subject) : revisions.get(subject) !== Number(last.sequence)))
      wrong.push(['events that are not its changes', subject, ofSubject.map(({ type: name }) => name)]);
    revisions.delete(subject);
  }
  if (revisions.size > 0) wrong.push(['changes without events', [...revisions]]);
  return wrong;
}

/** On a machine that does much else beside. */
const LONG_MS = 900_000;

it(
  'at rest every object obeys its type and every reference has its target, whatever clients, replicas and faults did',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(command, { minLength: 4, maxLength: 14 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1 }),
        async (clients, seed) => {
          const context = contextOf(serverToken(newId()));
          for (const type of NAMES)
            await createMemoryType(
              replicas[0]!,
              CreateMemoryTypeRequest.fromPartial({ type, jsonSchema: '{}' }),
              context,
            );
          let state = seed;
          chance = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
          await Promise.all(
            clients.map(async (commands, client) => {
              for (const each of commands)
                await run(replicas[client % 2]!, context, each).catch((error: unknown) => {
                  if (!(error instanceof ServiceError) || !REFUSALS.has(error.reason)) throw error;
                });
            }),
          );
          chance = () => 1;
          // What was under way when a batch failed is done by another replica, as if its lease had expired.
          for (const { _id } of await opened.store.find(context.principal.organizationId, TYPE_CHANGES, {
            state: 'running',
          }))
            await opened.platformStore.apply([update(TYPE_CHANGES, { _id }, { set: { leaseUntil: 0 } })]);
          await typeChangesJob({ ...replicas[1]!, instanceId: newId() }).run(new AbortController().signal);
          expect(await wrongIn(context)).toEqual([]);
        },
      ),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 200) },
    );
  },
  LONG_MS,
);
