import type { MemoryType } from 'proto/memory/v1/memory.ts';
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
    groupNames,
    relations,
    state,
    createdAt,
    updatedAt,
  };
}
