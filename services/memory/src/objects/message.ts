import type { MemoryObject } from 'proto/memory/v1/memory.ts';
import type { MemoryObjectRecord } from './store.ts';

/**
 * The ETag of an object: every write changes it, and so does another name of its type, which the object shows.
 * @param type name of the type that the object belongs to
 */
export const memoryObjectTag = ({ revision }: MemoryObjectRecord, type: string): string => `"${revision}-${type}"`;

/** @param type name of the type that the object belongs to */
export function memoryObjectMessage(
  { _id, typeId, key, content, schemaVersion, revision, createdAt, updatedAt }: MemoryObjectRecord,
  type: string,
): MemoryObject {
  return { id: _id, typeId, type, key, content, schemaVersion, revision, createdAt, updatedAt };
}
