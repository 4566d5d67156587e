import { parseJson } from 'platform/core/parse-json.ts';
import { ServiceError, type Violation } from 'platform/core/errors.ts';
import type { SchemaCache } from 'platform/json-schema/cache.ts';
import type { IdSchema } from 'proto/memory/v1/memory.ts';
import { deriveKey, hasSameKeyValues } from '../types/id-schema.ts';
import type { Definition } from '../types/rules.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import type { MemoryObjectRecord } from './store.ts';

type Checked = Pick<Definition, 'jsonSchema' | 'idSchema'>;

/**
 * What is wrong with a content, with paths below /content, and the key that the idSchema derives of it, if the type has
 * one. May take long: call it through the fair scheduler.
 */
export function violationsOf(
  schemas: SchemaCache,
  { organizationId, jsonSchema, idSchema }: Checked & { organizationId: string },
  content: Record<string, unknown>,
): { violations: Violation[]; derived?: string } {
  const violations = schemas.compile(organizationId, jsonSchema).validate(content, '/content', { showAllowed: true });
  if (idSchema === null) return { violations };
  const derived = deriveKey(parseJson(idSchema) as IdSchema, content);
  if ('key' in derived) return { violations, derived: derived.key };
  // One mistake is one violation: what the schema requires already is not said again.
  const others = derived.violations.filter(({ path }) => !violations.some((violation) => violation.path === path));
  return { violations: [...violations, ...others] };
}

/**
 * The key that the idSchema of the type derives; undefined where the type has none. May take long: call it through the
 * fair scheduler.
 * @throws ServiceError INVALID_CONTENT with all violations when it derives none
 */
export function derivedKey(
  schemas: SchemaCache,
  type: MemoryTypeRecord,
  content: Record<string, unknown>,
): string | undefined {
  if (type.idSchema === null) return undefined;
  const derived = deriveKey(parseJson(type.idSchema) as IdSchema, content);
  if ('key' in derived) return derived.key;
  const { violations: details } = violationsOf(schemas, type, content);
  throw new ServiceError('INVALID_CONTENT', undefined, { details });
}

/**
 * Whether a content is for the object that has its key: the idSchema of the type makes the key of the same values.
 * May take long: call it through the fair scheduler.
 * @returns other: the object has the key by other values; none: by none, as a change by force may leave it
 */
export function keyHolder(
  { idSchema: text }: MemoryTypeRecord,
  { key, content: stored }: Pick<MemoryObjectRecord, 'key' | 'content'>,
  content: Record<string, unknown>,
): 'same' | 'other' | 'none' {
  if (text === null) return 'same';
  const idSchema = parseJson(text) as IdSchema;
  const before = parseJson(stored) as Record<string, unknown>;
  if (hasSameKeyValues(idSchema, before, content)) return 'same';
  const derived = deriveKey(idSchema, before);
  return 'key' in derived && derived.key === key ? 'other' : 'none';
}

/**
 * Validates a content against the schema of its type, and against what the type is to be while it changes. May take
 * long: call it through the fair scheduler.
 * @param key of the object
 * @throws ServiceError INVALID_CONTENT with the violations; TYPE_CHANGING when the type is being deleted, or when only
 * what the type is to be forbids the content
 */
export function checkContent(
  schemas: SchemaCache,
  { organizationId, jsonSchema, state, next }: MemoryTypeRecord,
  content: Record<string, unknown>,
  key: string,
): void {
  if (state === 'deleting') throw new ServiceError('TYPE_CHANGING', 'The memory type is being deleted');
  const { violations: details } = violationsOf(schemas, { organizationId, jsonSchema, idSchema: null }, content);
  if (details.length > 0) throw new ServiceError('INVALID_CONTENT', undefined, { details });
  if (!next) return;
  const later = violationsOf(schemas, { organizationId, ...(parseJson(next) as Checked) }, content);
  if (later.violations.length > 0 || (later.derived ?? key) !== key)
    throw new ServiceError(
      'TYPE_CHANGING',
      'The memory type is being changed, and the content does not fit what it is to be',
      { details: later.violations },
    );
}
