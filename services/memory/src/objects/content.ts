import { ServiceError } from 'platform/errors.ts';
import { compileSchema } from 'platform/schema.ts';

/** @throws ServiceError INVALID_CONTENT with the violations, their paths below /content */
export function requireValidContent(jsonSchema: string, content: Record<string, unknown>): void {
  const violations = compileSchema(jsonSchema).validate(content);
  if (violations.length === 0) return;
  throw new ServiceError('INVALID_CONTENT', undefined, { details: violations.map(({ path, message }) => ({ path: `/content${path}`, message })) });
}
