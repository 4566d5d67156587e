import type { MemoryObject } from 'proto/memory/v1/memory.ts';
import type { MemoryObjectRecord } from './store.ts';

/** @param type name of the object's type */
export function objectMessage(
  { _id, typeId, key, content, schemaVersion, revision, createdAt, updatedAt }: MemoryObjectRecord,
  type: string,
): MemoryObject {
  return { id: _id, typeId, type, key, content, schemaVersion, revision, createdAt, updatedAt };
}
