import type { MemoryType } from 'proto/memory/v1/memory.ts';
import type { MemoryTypeRecord } from './store.ts';

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
