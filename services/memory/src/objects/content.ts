import { ServiceError } from 'platform/core/errors.ts';
import type { FairScheduler } from '../fair-scheduler.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import type { MemoryTypeRecord } from '../types/store.ts';

/** @throws ServiceError INVALID_CONTENT with the violations, their paths below /content */
export async function requireValidContent(
  schedule: FairScheduler,
  { organizationId, jsonSchema }: MemoryTypeRecord,
  content: Record<string, unknown>,
): Promise<void> {
  const details = await schedule(organizationId, () => compileSchema(jsonSchema).validate(content, '/content'));
  if (details.length > 0) throw new ServiceError('INVALID_CONTENT', undefined, { details });
}
