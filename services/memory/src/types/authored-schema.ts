import { invalid } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { checkSpelling } from 'platform/json-schema/spelling.ts';
import type { SchemaCache } from 'platform/json-schema/cache.ts';

/**
 * Checks a jsonSchema that is new to its type; what an earlier release stored stays as it is. May take long: call it
 * through the fair scheduler.
 * @throws ServiceError INVALID_SCHEMA
 */
export function checkAuthoredSchema(schemas: SchemaCache, organizationId: string, jsonSchema: string): void {
  schemas.compile(organizationId, jsonSchema, { path: '/jsonSchema' });
  const schema = parseJson(jsonSchema) as Record<string, unknown>;
  checkSpelling(schema, '/jsonSchema');
  const { type } = schema;
  if (type !== undefined && ![type].flat().includes('object'))
    throw invalid(
      '/jsonSchema/type',
      'type must allow "object": the content of every memory object is one',
      'INVALID_SCHEMA',
    );
}
