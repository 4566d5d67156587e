import { ServiceError } from 'platform/errors.ts';
import { compileSchema } from 'platform/schema.ts';

/** @throws ServiceError INVALID_CONTENT with the violations, their paths below /content */
export function requireValidContent(jsonSchema: string, content: Record<string, unknown>): void {
  const details = compileSchema(jsonSchema).validate(content, '/content');
  if (details.length > 0) throw new ServiceError('INVALID_CONTENT', undefined, { details });
}
