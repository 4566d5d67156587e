import fc from 'fast-check';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
  type MemoryObject,
} from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { cancelMemoryTypeChange } from '../src/changes/cancel-memory-type-change.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';

export const SCHEMAS = [
  '{}',
  '{"properties":{"n":{"maximum":5}}}',
  '{"required":["n"]}',
  '{"properties":{"n":{"minimum":3}}}',
];
/** Of the types that are there at the start, and one more. */
export const NAMES = ['Person', 'Thing', 'Other'];
const KEYS = ['a', 'b', 'c', 'd'];
const ON_DELETE = ['restrict', 'cascade', 'setNull'];

type Write = { do: 'create' | 'upsert' | 'patch'; key: number; n: number; owner: number; owners: string[]; id: number };
type TypeChange =
  | { do: 'schema'; schema: number; dryRun: boolean; name?: string | undefined }
  | { do: 'idSchema'; none: boolean }
  | { do: 'relations'; target: number; onDelete: number; cardinality: 'one' | 'many'; none: boolean };
export type Command = { type: number } & (
  Write | { do: 'deleteObject'; key: number } | TypeChange | { do: 'deleteType' | 'createType' | 'cancel' }
);
export const isOfObject = (command: Command): command is Extract<Command, { key: number }> => 'key' in command;

const key = fc.nat(KEYS.length - 1);
const type = fc.oneof({ weight: 9, arbitrary: fc.nat(1) }, { weight: 1, arbitrary: fc.constant(NAMES.length - 1) });
const write = fc
  .record({
    do: fc.constantFrom('create' as const, 'upsert' as const, 'patch' as const),
    ...{ type, key, n: fc.nat(9), owner: fc.nat(KEYS.length), owners: fc.subarray(KEYS, { maxLength: 2 }) },
    otherId: fc.option(key, { freq: 8 }),
  })
  .map(({ otherId, ...given }) => ({ ...given, id: otherId ?? given.key }));
export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: write },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deleteObject' as const), type, key }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('schema' as const),
      ...{ type, schema: fc.nat(3), dryRun: fc.boolean() },
      name: fc.option(fc.constantFrom(...NAMES), { freq: 3, nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('relations' as const),
      ...{ type, target: type, onDelete: fc.nat(2), none: fc.boolean() },
      cardinality: fc.constantFrom('one' as const, 'many' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ do: fc.constant('idSchema' as const), type, none: fc.boolean() }),
      fc.record({ do: fc.constantFrom('deleteType' as const, 'createType' as const, 'cancel' as const), type }),
    ),
  },
);

/** The event that a request has by what its client was told. */
export interface Told {
  type: string;
  subject: string;
  /** Of an object. */
  revision?: number;
}

/** Runs one command on a replica. @returns undefined where its client was told of no change that is done */
export async function run(deps: Deps, context: CallContext, given: Command): Promise<Told | undefined> {
  const name = NAMES[given.type]!;
  const { organizationId } = context.principal;
  const typeId = async () => (await deps.types.byName(organizationId, name, {}))?._id ?? newId();
  const objectId = async (at: number) =>
    (await deps.objects.byKey(organizationId, await typeId(), KEYS[at]!))?._id ?? newId();
  switch (given.do) {
    case 'createType': {
      const request = CreateMemoryTypeRequest.fromPartial({ type: name, jsonSchema: '{}' });
      const { memoryType } = await createMemoryType(deps, request, context);
      return { type: 'memory.type.created.v1', subject: `types/${memoryType!.id}` };
    }
    case 'deleteType': {
      const request = { id: await typeId(), cascade: true, ifMatch: undefined };
      const { deleted } = await deleteMemoryType(deps, request, context);
      return deleted && { type: 'memory.type.deleted.v1', subject: `types/${deleted.id}` };
    }
    case 'cancel':
      await cancelMemoryTypeChange(deps, { id: await typeId() }, context);
      return undefined;
    case 'schema':
    case 'idSchema':
    case 'relations': {
      const body = { ...bodyOf(given), pathId: await typeId() };
      const request = UpdateMemoryTypeRequest.fromPartial(body);
      const { outcome, memoryType } = await updateMemoryType(deps, request, context);
      if (outcome !== 'DONE' || !memoryType) return undefined;
      return { type: 'memory.type.updated.v1', subject: `types/${memoryType.id}` };
    }
    case 'deleteObject': {
      const { id } = await deleteMemoryObject(deps, { id: await objectId(given.key), ifMatch: undefined }, context);
      return { type: 'memory.object.deleted.v1', subject: `objects/${id}` };
    }
    case 'patch': {
      const body = { pathId: await objectId(given.key), content: contentOf(given), updateMask: ['content'] };
      const { memoryObject } = await updateMemoryObject(deps, UpdateMemoryObjectRequest.fromPartial(body), context);
      return written(memoryObject);
    }
    default: {
      const body = { type: name, key: KEYS[given.key]!, content: contentOf(given), upsert: given.do === 'upsert' };
      const { memoryObject } = await createMemoryObject(deps, CreateMemoryObjectRequest.fromPartial(body), context);
      return written(memoryObject);
    }
  }
}

/** The content that a command writes, as JSON text. */
export const contentOf = ({ n, id, owner, owners }: Write): string =>
  JSON.stringify({ n, id: KEYS[id], ...(KEYS[owner] !== undefined && { owner: KEYS[owner] }), owners });

const written = (object: MemoryObject | undefined): Told => ({
  type: object!.revision === 1 ? 'memory.object.created.v1' : 'memory.object.updated.v1',
  subject: `objects/${object!.id}`,
  revision: object!.revision,
});

function bodyOf(given: TypeChange): Parameters<typeof UpdateMemoryTypeRequest.fromPartial>[0] {
  if (given.do === 'schema') {
    const { schema, dryRun, name } = given;
    const renamed = name === undefined ? {} : { type: name };
    return { jsonSchema: SCHEMAS[schema]!, ...renamed, dryRun, updateMask: ['jsonSchema', ...Object.keys(renamed)] };
  }
  if (given.do === 'idSchema')
    return { ...(!given.none && { idSchema: { properties: ['/id'] } }), updateMask: ['idSchema'] };
  const { cardinality, target, onDelete, none } = given;
  const relation = {
    name: 'owner',
    targetType: NAMES[target]!,
    path: cardinality === 'one' ? '/owner' : '/owners',
    cardinality,
    onDelete: ON_DELETE[onDelete]!,
  };
  return { relations: none ? [] : [relation], updateMask: ['relations'] };
}
