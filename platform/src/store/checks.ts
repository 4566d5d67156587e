import { MAX_TEXT, NAME, type Changes, type Collection, type Document, type FindOptions, type Op } from './store.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Checks an operation except for its filter, which an engine checks when it translates it. @throws TypeError */
export function checkOp(op: Op): void {
  if (op.kind === 'insert') return checkInsert(op.collection, op.document as unknown as Fields);
  if (typeof op.where._id !== 'string') throw new TypeError('an update or remove names one document by _id');
  if (op.kind === 'update') checkChanges(op.collection, op.changes);
}

/** Fields that only the store itself reads and writes (see document-versions.ts). */
const RESERVED = ['shape', 'writes'];

function checkInsert(collection: Collection<never>, document: Fields): void {
  checkDocument(document);
  checkNotReserved(document);
  checkText(collection, '_id', document);
  if (collection.scope === 'organization') checkText(collection, 'organizationId', document);
  for (const field of uniqueFields(collection)) checkUnique(collection, field, document[field]);
  checkKinds(collection, document);
}

function checkText({ name }: Collection<never>, field: string, document: Fields): void {
  if (typeof document[field] !== 'string' || document[field] === '')
    throw new TypeError(`${name}: ${field} must be text`);
}

/** A UUID as ids are stored. */
export const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;

/** A character outside of the Basic Multilingual Plane has a length of 2. */
const isShort = (text: string): boolean =>
  text.length <= MAX_TEXT || (text.length <= 2 * MAX_TEXT && Array.from(text).length <= MAX_TEXT);

function checkKinds({ name, columns }: Collection<never>, fields: Fields): void {
  for (const field in columns) {
    const value = fields[field] ?? undefined;
    const kind = columns[field]!;
    if (value === undefined) continue;
    const fits =
      kind === 'number'
        ? typeof value === 'number'
        : typeof value === 'string' && (kind === 'long' || (kind === 'text' ? isShort(value) : UUID.test(value)));
    if (!fits) throw new TypeError(`${name}: ${field} is no ${kind}`);
  }
}

function checkChanges(collection: Collection<never>, { set = {}, increment = {} }: Changes<Document>): void {
  for (const fields of [set, increment] as Fields[]) {
    checkDocument(fields);
    checkNotReserved(fields);
    if ('_id' in fields || 'organizationId' in fields) throw new TypeError('_id and organizationId cannot change');
  }
  for (const field in increment) {
    if (!Number.isFinite((increment as Fields)[field]))
      throw new TypeError(`${field} is incremented by a finite number`);
    if (field in set) throw new TypeError(`${field} is both set and incremented`);
  }
  for (const field of uniqueFields(collection))
    if (field in set) checkUnique(collection, field, (set as Fields)[field]);
  checkKinds(collection, set);
}

function checkNotReserved(fields: Fields): void {
  for (const field of RESERVED)
    if (field in fields) throw new TypeError(`the field name ${field} is reserved for the store`);
}

const uniqueFieldsOf = new WeakMap<Collection<never>, readonly string[]>();

function uniqueFields(collection: Collection<never>): readonly string[] {
  let fields = uniqueFieldsOf.get(collection);
  if (fields === undefined) {
    const unique = [...collection.indexes, ...collection.platformIndexes].filter((index) => index.unique);
    uniqueFieldsOf.set(collection, (fields = unique.flatMap((index) => index.fields)));
  }
  return fields;
}

function checkUnique(collection: Collection<never>, field: string, value: unknown): void {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    throw new TypeError(`${collection.name}: the unique field ${field} must be text, a number or a boolean`);
}

const OPERATORS = new Set(['in', 'containsAny', 'ne', 'gt', 'gte', 'lt', 'lte']);

/**
 * Rejects a filter that the two engines would understand differently. Each engine calls it before it translates a
 * filter.
 * @throws TypeError on undefined, a bad field name, an unknown operator, a value that is no scalar
 */
export function checkFilter(filter: Readonly<Record<string, unknown>>): void {
  for (const field in filter) {
    const condition = filter[field];
    if (!isName(field)) throw new TypeError(`bad field name in a filter: ${field}`);
    if (condition === null || typeof condition !== 'object') {
      checkScalar(field, condition);
      continue;
    }
    let isEmpty = true;
    for (const operator in condition) {
      isEmpty = false;
      const value = (condition as Fields)[operator];
      if (!OPERATORS.has(operator)) throw new TypeError(`unknown operator ${operator} on ${field}`);
      if (operator === 'in') {
        if (!Array.isArray(value)) throw new TypeError(`${field}: in takes an array`);
        for (const item of value) checkScalar(field, item ?? undefined);
      } else if (operator === 'containsAny') {
        if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
          throw new TypeError(`${field}: containsAny takes an array of texts`);
      } else if (operator !== 'ne' && typeof value !== 'string' && typeof value !== 'number')
        throw new TypeError(`${field}: ${operator} takes text or a number`);
      else checkScalar(field, value);
    }
    if (isEmpty) throw new TypeError(`empty condition on ${field}`);
  }
}

/**
 * The complete sort order of a find: the sort fields, then `_id` in the direction of the last of them.
 * @throws TypeError on a bad field name, limit, skip or keyset
 */
export function completeSort<D>({
  sort = [],
  after,
  skip = 0,
  limit = 1,
  maxBytes = 0,
}: FindOptions<D>): readonly (readonly [field: string, direction: 'asc' | 'desc'])[] {
  for (const [field, direction] of sort)
    if (!NAME.test(field) || !/^(asc|desc)$/.test(direction)) throw new TypeError(`bad sort: ${field} ${direction}`);
  if (!Number.isSafeInteger(skip) || skip < 0 || !Number.isSafeInteger(limit) || limit < 1)
    throw new TypeError(`bad skip ${skip} or limit ${limit}`);
  if (typeof maxBytes !== 'number' || !(maxBytes >= 0)) throw new TypeError(`bad maxBytes ${maxBytes}`);
  const last = sort.at(-1);
  const order = last?.[0] === '_id' ? sort : [...sort, ['_id', last?.[1] ?? 'asc'] as const];
  if (after !== undefined) {
    if (after.length !== order.length) throw new TypeError(`after takes ${order.length} values`);
    for (const [place, value] of after.entries()) checkScalar(order[place]![0], value ?? undefined);
  }
  return order;
}

function checkScalar(field: string, value: unknown): void {
  const ok =
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value));
  if (!ok) throw new TypeError(`filter value of ${field} must be a string, a finite number, a boolean or null`);
}

/** Rejects a document that one engine would store as it is and the other would change. @throws TypeError */
function checkDocument(document: Readonly<Record<string, unknown>>): void {
  for (const field in document) {
    if (!isName(field) || field === '_bsontype') throw new TypeError(`bad field name: ${field}`);
    checkValue(field, document[field], 0);
  }
}

/** Programs name fields, not users, so the same few names come again and again. */
const knownNames = new Set<string>();
const MAX_KNOWN_NAMES = 1_000;

function isName(text: string): boolean {
  if (knownNames.has(text)) return true;
  if (!NAME.test(text)) return false;
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.add(text);
  return true;
}

function checkValue(field: string, value: unknown, depth: number): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number' && Number.isFinite(value)) return;
  if (depth < 8 && Array.isArray(value)) return value.forEach((item) => checkValue(field, item, depth + 1));
  if (depth < 8 && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    for (const key in value) {
      const item = (value as Fields)[key];
      if (!isName(key) || key === '_bsontype')
        throw new TypeError(`bad key ${key} in ${field}; user JSON is stored as text`);
      checkValue(field, item, depth + 1);
    }
    return;
  }
  throw new TypeError(`${field} is not plain JSON`);
}
