import { ServiceError } from 'platform/errors.ts';
import type { Fairly } from 'platform/fair-turns.ts';
import { compileSchema } from 'platform/schema.ts';
import type { MemoryTypeRecord } from '../types/store.ts';

/** @throws ServiceError INVALID_CONTENT with the violations, their paths below /content */
export async function requireValidContent(
  fairly: Fairly,
  { organizationId, jsonSchema }: MemoryTypeRecord,
  content: Record<string, unknown>,
): Promise<void> {
  const details = await fairly(organizationId, () => compileSchema(jsonSchema).validate(content, '/content'));
  if (details.length > 0) throw new ServiceError('INVALID_CONTENT', undefined, { details });
}
