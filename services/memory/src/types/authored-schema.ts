import { invalid } from 'platform/core/errors.ts';
import { escapePointer } from 'platform/core/json-pointer.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { requireMeant } from 'platform/json-schema/authored.ts';
import type { SchemaCache } from 'platform/json-schema/cache.ts';

/**
 * Checks a jsonSchema that is new to its type; what an earlier release stored stays as it is. May take long: call it
 * through the fair scheduler.
 * @throws ServiceError INVALID_SCHEMA
 */
export function checkAuthoredSchema(schemas: SchemaCache, organizationId: string, jsonSchema: string): void {
  const schema = parseJson(jsonSchema) as Record<string, unknown>;
  requireMeant(schema, '/jsonSchema');
  schemas.compile(organizationId, jsonSchema, { path: '/jsonSchema' });
  requireSatisfiable(schema);
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Finds what the keywords at the top say by themselves; whether any value conforms is not decidable in general. */
function requireSatisfiable(schema: Record<string, unknown>): void {
  const reject = (at: string, message: string): never => {
    throw invalid(`/jsonSchema/${at}`, message, 'INVALID_SCHEMA');
  };
  const { type, required = [], properties = {} } = schema;
  if (type !== undefined && ![type].flat().includes('object'))
    reject('type', 'type must allow "object": the content of every memory object is one');
  if (Object.hasOwn(schema, 'const') && !isObject(schema['const']))
    reject('const', 'const must be an object: the content of every memory object is one');
  if (Array.isArray(schema['enum']) && !schema['enum'].some(isObject))
    reject('enum', 'enum must have an object: the content of every memory object is one');
  const { not } = schema;
  if (not === true || (isObject(not) && Object.keys(not as object).length === 0)) reject('not', 'not allows no object');
  for (const name of required as string[])
    if (Object.hasOwn(properties as object, name) && (properties as Record<string, unknown>)[name] === false)
      reject(`properties/${escapePointer(name)}`, 'forbids a member that is required');
}
