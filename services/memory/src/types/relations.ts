import type { Relation } from 'proto/memory/v1/memory.ts';
import { invalid, ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { segmentsOf, valueAt } from 'platform/core/json-pointer.ts';
import { escapePointer } from 'platform/core/json-pointer.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { SchemaCache } from 'platform/json-schema/cache.ts';
import { requirePointers } from './id-schema.ts';
import { covers, foldTypeName, requireActive, visibleTo } from './rules.ts';
import type { MemoryTypeRecord, MemoryTypes } from './store.ts';

/** A relation as a type has it. */
export interface StoredRelation {
  /** Another one when the target type, the path or the cardinality changes. */
  id: string;
  name: string;
  targetTypeId: string;
  path: string;
  cardinality: 'one' | 'many';
  required: boolean;
  onDelete: 'restrict' | 'cascade' | 'setNull';
}

const MAX_RELATIONS = 32;
const NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;
const ON_DELETE = ['restrict', 'cascade', 'setNull'];

export const relationsOf = ({ relations }: { relations: string }): StoredRelation[] =>
  relations === '[]' ? [] : (parseJson(relations) as StoredRelation[]);

/** Ids of the other types that the relations of a type point to. */
export const otherTargets = (typeId: string, relations: readonly StoredRelation[]): string[] =>
  [...new Set(relations.map(({ targetTypeId }) => targetTypeId))].filter((id) => id !== typeId).sort();

/** @throws ServiceError INVALID_REQUEST naming the wrong member of a relation */
export function checkRelations(relations: readonly Relation[]): void {
  if (relations.length > MAX_RELATIONS)
    throw invalid('/relations', `relations must have at most ${MAX_RELATIONS} elements`);
  requirePointers(
    relations.map(({ path }) => path),
    '/relations',
    '/path',
  );
  relations.forEach(({ name, path, cardinality, required, onDelete = 'restrict' }, index) => {
    const at = `/relations/${index}`;
    // What happens to the one would change or move the key of the other.
    if (relations.some((other) => path.startsWith(`${other.path}/`)))
      throw invalid(`${at}/path`, 'path must not be below the path of another relation');
    if (!NAME.test(name)) throw invalid(`${at}/name`, 'name must be 1 to 100 printable characters');
    if (relations.findIndex((other) => other.name === name) !== index)
      throw invalid(`${at}/name`, 'name must not be that of another relation');
    if (cardinality !== 'one' && cardinality !== 'many')
      throw invalid(`${at}/cardinality`, 'cardinality must be "one" or "many"');
    if (!ON_DELETE.includes(onDelete))
      throw invalid(`${at}/onDelete`, 'onDelete must be "restrict", "cascade" or "setNull"');
    if (onDelete === 'setNull' && required)
      throw invalid(`${at}/onDelete`, 'onDelete must not be "setNull" where the relation is required');
  });
}

/**
 * The relations as a type has them, with the ids of their target types. Everybody who sees the type must see these.
 * @param type that gets the relations, with its name and audience as they are to be
 * @param before the relations that it has now, and its name
 * @throws ServiceError INVALID_REQUEST when a target type does not exist or is seen by fewer; TYPE_CHANGING
 */
export async function storedRelations(
  types: MemoryTypes,
  principal: Principal,
  type: Pick<MemoryTypeRecord, '_id' | 'organizationId' | 'typeLower' | 'audience'>,
  relations: readonly Relation[],
  before: { relations: readonly StoredRelation[]; typeLower?: string },
): Promise<{ stored: StoredRelation[]; targets: MemoryTypeRecord[] }> {
  const targets = new Map<string, MemoryTypeRecord>();
  const stored: StoredRelation[] = [];
  for (const [
    index,
    { name, targetType, path, cardinality, required = false, onDelete = 'restrict' },
  ] of relations.entries()) {
    const at = `/relations/${index}/targetType`;
    let targetTypeId = type._id;
    const isItself = [type.typeLower, before.typeLower].includes(foldTypeName(targetType));
    if (!isItself) {
      const target = await types.byName(type.organizationId, targetType, visibleTo(principal));
      if (!target) throw invalid(at, 'targetType must be the name of a memory type');
      if (!covers(target.audience, type.audience))
        throw invalid(at, 'targetType must be seen by everybody who sees this type');
      requireActive(target);
      targets.set(target._id, target);
      targetTypeId = target._id;
    }
    const same = before.relations.find(
      (one) =>
        one.name === name && one.targetTypeId === targetTypeId && one.path === path && one.cardinality === cardinality,
    );
    stored.push({
      id: same?.id ?? newId(),
      name,
      targetTypeId,
      path,
      cardinality: cardinality as StoredRelation['cardinality'],
      required,
      onDelete: onDelete as StoredRelation['onDelete'],
    });
  }
  return { stored, targets: [...targets.values()] };
}

/**
 * Checks that the schema allows null where a relation sets it, as far as `properties` tell: all of them at once,
 * because compiling a schema takes long. Call it through the fair scheduler.
 * @throws ServiceError INVALID_REQUEST
 */
export function checkSetNull(
  schemas: Pick<SchemaCache, 'compile'>,
  { organizationId, jsonSchema, relations }: Pick<MemoryTypeRecord, 'organizationId' | 'jsonSchema' | 'relations'>,
): void {
  const nulled = relationsOf({ relations })
    .map(({ path, cardinality, onDelete }, index) => ({ pointer: schemaPointerOf(path), index, cardinality, onDelete }))
    .filter(({ cardinality, onDelete }) => onDelete === 'setNull' && cardinality === 'one');
  if (nulled.length === 0) return;
  const root = parseJson(jsonSchema) as Record<string, unknown>;
  const asked = nulled.filter(({ pointer }) => valueAt(root, pointer) !== undefined);
  if (asked.length === 0) return;
  const nulls = asked.map(() => null);
  const places = asked.map(({ pointer }) => pointer);
  const [first] = schemas.compile(organizationId, jsonSchema, { places }).validate(nulls);
  // the path of none of them: all together take too many steps
  if (first?.path === '')
    throw new ServiceError('INVALID_SCHEMA', undefined, { details: [{ ...first, path: '/jsonSchema' }] });
  if (first)
    throw invalid(
      `/relations/${asked[Number(segmentsOf(first.path)[0])]!.index}/onDelete`,
      'onDelete must not be "setNull" where the jsonSchema forbids null',
    );
}

const schemaPointerOf = (path: string): string =>
  segmentsOf(path)
    .map((name) => `/properties/${escapePointer(name)}`)
    .join('');
