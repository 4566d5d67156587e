import type { IncompatibleObject } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { Principal } from 'platform/core/principal.ts';
import {
  collection,
  insert,
  remove,
  update,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import type { MemoryTypeRecord } from '../types/store.ts';

/**
 * Work for which all objects of a type are read: a change of the type that objects might break, a dry run of one, or
 * the deletion of a type with its objects. Its `_id` is that of the type, which has at most one.
 */
export interface TypeChangeRecord extends OrganizationDocument {
  /** Another one for each piece of work. */
  changeId: string;
  action: 'update' | 'dryRun' | 'delete';
  state: 'running' | 'done' | 'failed' | 'cancelled';
  /** An update that does not ask whether objects break it. */
  force: boolean;
  /** JSON text of the type's fields as they are to be (NextType); empty for a deletion, and when the work has ended. */
  next: string;
  /** Who asked for it: JSON text of the principal; empty when the work has ended. */
  principal: string;
  requestId: string;
  /** Objects checked, or deleted. */
  checked: number;
  /** Objects of the type at the start. */
  of: number;
  /** Objects that would break the change; `examples` is JSON text of up to ten. */
  incompatible: number;
  examples: string;
  /** Id of the last object that was checked, or of the first one of a deletion's last batch; empty at the start. */
  cursor: string;
  /** Rises with every write of this record, each of which expects it: what a former owner writes is refused. */
  steps: number;
  /** The process that does the work, until `leaseUntil` (milliseconds since 1970 by the store's clock). */
  owner: string;
  leaseUntil: number;
  startedAt: string;
  finishedAt: string | null;
}
export const TYPE_CHANGES = collection<TypeChangeRecord>('type_changes', {
  scope: 'organization',
  columns: { state: 'text', leaseUntil: 'number', next: 'long', examples: 'long' },
  indexes: [{ fields: ['state'] }],
  platformIndexes: [{ fields: ['state', 'leaseUntil'] }],
});

const EXAMPLES = 10;

/** The fields that an update may set: all but those of the type's identity, state, and counters. */
export function nextFields(after: MemoryTypeRecord): NextType {
  const { _id, organizationId, createdAt, updatedAt, version, revision, epoch, ...others } = after;
  const { state, next, bytes, relationTargets, dependents, relied, ...fields } = others;
  return fields;
}
export type NextType = Omit<
  MemoryTypeRecord,
  | ('_id' | 'organizationId' | 'createdAt' | 'updatedAt' | 'version' | 'revision' | 'epoch')
  | ('state' | 'next' | 'bytes' | 'relationTargets' | 'dependents' | 'relied')
>;

/** What changed since the record was read. */
export type Progress = Partial<
  Pick<
    TypeChangeRecord,
    | 'checked'
    | 'incompatible'
    | 'examples'
    | 'cursor'
    | 'state'
    | 'owner'
    | 'leaseUntil'
    | 'finishedAt'
    | 'next'
    | 'principal'
  >
>;

export const withProgress = (change: TypeChangeRecord, progress: Progress): TypeChangeRecord => ({
  ...change,
  ...progress,
  steps: change.steps + 1,
});

/** Fails its batch when anybody has written the record since it was read. */
export const progressOp = ({ _id, steps }: TypeChangeRecord, progress: Progress): Op =>
  update(TYPE_CHANGES, { _id, steps }, { set: { ...progress, steps: steps + 1 } });

/** Puts the record in the place of the one that was read before, which may be running. */
export function startOp(before: TypeChangeRecord | undefined, record: TypeChangeRecord): Op {
  if (!before) return insert(TYPE_CHANGES, record);
  const { _id, organizationId: _, ...set } = { ...record, steps: before.steps + 1 };
  return update(TYPE_CHANGES, { _id, steps: before.steps }, { set });
}

export const removeChangeOp = ({ _id, steps }: TypeChangeRecord): Op => remove(TYPE_CHANGES, { _id, steps });

/** For the batch that deletes a type: nothing is under way for it. */
export const forgetChangeOp = (typeId: string): Op => remove(TYPE_CHANGES, { _id: typeId }, { optional: true });

export const examplesOf = ({ examples }: TypeChangeRecord): IncompatibleObject[] =>
  parseJson(examples) as IncompatibleObject[];
export const withExamples = (change: TypeChangeRecord, more: readonly IncompatibleObject[]): string =>
  more.length === 0 ? change.examples : JSON.stringify([...examplesOf(change), ...more].slice(0, EXAMPLES));

export const principalOf = ({ principal }: TypeChangeRecord): Principal => parseJson(principal) as Principal;

export function openTypeChanges(store: Store) {
  return {
    byType: (organizationId: string, typeId: string): Promise<TypeChangeRecord | undefined> =>
      store.findOne(organizationId, TYPE_CHANGES, { _id: typeId }),
    ofTypes: (organizationId: string, typeIds: readonly string[]): Promise<TypeChangeRecord[]> =>
      typeIds.length === 0 ? Promise.resolve([]) : store.find(organizationId, TYPE_CHANGES, { _id: { in: typeIds } }),
    countRunning: (organizationId: string): Promise<number> =>
      store.count(organizationId, TYPE_CHANGES, { state: 'running' }),
    /** @throws ExpectationFailedError when somebody else has written a record */
    apply: (organizationId: string, ops: readonly Op[]): Promise<void> => store.apply(organizationId, ops),
  };
}
export type TypeChanges = ReturnType<typeof openTypeChanges>;
