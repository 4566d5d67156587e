import { ServiceError } from 'platform/core/errors.ts';
import type { SchemaCache } from 'platform/json-schema/cache.ts';
import type { IdSchema } from 'proto/memory/v1/memory.ts';
import { deriveKey } from '../types/id-schema.ts';
import type { MemoryTypeRecord } from '../types/store.ts';

/**
 * Validates a content against the definition of its type, which may take long: call it through the fair scheduler.
 * @returns the key that the idSchema derives; undefined where the type has none
 * @throws ServiceError INVALID_CONTENT with the violations, their paths below /content
 */
export function checkContent(
  schemas: SchemaCache,
  { organizationId, jsonSchema, idSchema }: Pick<MemoryTypeRecord, 'organizationId' | 'jsonSchema' | 'idSchema'>,
  content: Record<string, unknown>,
): string | undefined {
  const details = schemas.compile(organizationId, jsonSchema).validate(content, '/content', { showAllowed: true });
  const derived = idSchema === null ? undefined : deriveKey(JSON.parse(idSchema) as IdSchema, content);
  if (derived && 'violations' in derived) details.push(...derived.violations);
  if (details.length > 0) throw new ServiceError('INVALID_CONTENT', undefined, { details });
  return derived && 'key' in derived ? derived.key : undefined;
}
