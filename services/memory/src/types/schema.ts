import type { FairScheduler } from '../fair-scheduler.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { readObject } from '../json-object.ts';

/**
 * Takes the jsonSchema of a request, as text.
 * @throws ServiceError INVALID_REQUEST (missing, no object, too large), INVALID_SCHEMA (unsound)
 */
export async function soundSchema(
  schedule: FairScheduler,
  organizationId: string,
  text: string | undefined,
  maxBytes: number,
): Promise<string> {
  readObject('jsonSchema', text, maxBytes);
  await schedule(organizationId, () => compileSchema(text!, { path: '/jsonSchema' }));
  return text!;
}
