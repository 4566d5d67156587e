import type { EmbeddingSchema, IdSchema, MemoryType } from 'proto/memory/v1/memory.ts';
import type { MemoryTypeRecord } from './store.ts';

/** The ETag of a type: every write changes it. */
export const memoryTypeTag = ({ revision }: MemoryTypeRecord): string => `"${revision}"`;

export function memoryTypeMessage(record: MemoryTypeRecord): MemoryType {
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
    relations,
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
    idSchema: idSchema === null ? undefined : (JSON.parse(idSchema) as IdSchema),
    embeddingSchema: embeddingSchema === null ? undefined : (JSON.parse(embeddingSchema) as EmbeddingSchema),
    groupNames,
    relations,
    state,
    createdAt,
    updatedAt,
  };
}
