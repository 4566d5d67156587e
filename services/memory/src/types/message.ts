import { hash } from 'node:crypto';
import type { EmbeddingSchema, IdSchema, MemoryType } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { requireMatch } from '../request-members.ts';
import { memoryTypeChangeMessage } from '../changes/message.ts';
import type { TypeChangeRecord } from '../changes/store.ts';
import { relationsOf } from './relations.ts';
import type { MemoryTypeRecord } from './store.ts';

/**
 * The ETag of a type: every write changes it, every step of what is under way for it, and another name of a type that
 * its relations point to, which it shows.
 * @param names of those types, by id (`relationNames`)
 */
export function memoryTypeTag(
  { _id, revision, relations }: MemoryTypeRecord,
  change: TypeChangeRecord | undefined,
  names: ReadonlyMap<string, string>,
): string {
  const shown = relationsOf({ relations }).flatMap(({ targetTypeId: id }) => (id === _id ? [] : [names.get(id) ?? '']));
  const parts = [revision, ...(change ? [change.changeId, change.steps] : [])];
  return `"${[...parts, ...(shown.length > 0 ? [hash('sha256', shown.join(' '), 'hex').slice(0, 12)] : [])].join('-')}"`;
}

/** The part of a tag that tells of the work: its id and its steps. */
const WORK = /-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}-\d+/g;

/**
 * Checks If-Match against the tag of a type. Whether work was done for it makes no difference: a dry run, or a change
 * that was refused, has left the type as it was.
 * @throws ServiceError PRECONDITION_FAILED; INVALID_REQUEST
 */
export function requireTypeMatch(
  { ifMatch }: { ifMatch?: string | undefined },
  record: MemoryTypeRecord,
  names: ReadonlyMap<string, string>,
): void {
  requireMatch({ ifMatch: ifMatch?.replaceAll(WORK, '') }, memoryTypeTag(record, undefined, names));
}

/**
 * @param change the last work for which the objects of the type were read
 * @param names of the types that its relations point to, by id (`relationNames`)
 */
export function memoryTypeMessage(
  record: MemoryTypeRecord,
  change: TypeChangeRecord | undefined,
  names: ReadonlyMap<string, string>,
): MemoryType {
  const {
    _id,
    type,
    displayName,
    description,
    visibility,
    version,
    jsonSchema,
    idSchema,
    embeddingSchema,
    groupNames,
    state,
    createdAt,
    updatedAt,
  } = record;
  return {
    id: _id,
    type,
    displayName,
    description,
    visibility,
    version,
    jsonSchema,
    idSchema: idSchema === null ? undefined : (parseJson(idSchema) as IdSchema),
    embeddingSchema: embeddingSchema === null ? undefined : (parseJson(embeddingSchema) as EmbeddingSchema),
    groupNames,
    relations: relationsOf(record).map(({ name, targetTypeId, path, cardinality, required, onDelete }) => ({
      ...{ name, targetType: names.get(targetTypeId) ?? type, path, cardinality, required, onDelete },
    })),
    state,
    createdAt,
    updatedAt,
    change: change && memoryTypeChangeMessage(change),
  };
}
