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
  for (const field of ['_id', ...(collection.scope === 'organization' ? ['organizationId'] : [])]) {
    if (typeof document[field] !== 'string' || document[field] === '')
      throw new TypeError(`${collection.name}: ${field} must be text`);
  }
  for (const field of uniqueFields(collection)) checkUnique(collection, field, document[field]);
  checkKinds(collection, document);
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
  checkDocument(set);
  checkDocument(increment);
  checkNotReserved({ ...set, ...increment });
  for (const [field, by] of Object.entries(increment)) {
    if (!Number.isFinite(by)) throw new TypeError(`${field} is incremented by a finite number`);
    if (field in set) throw new TypeError(`${field} is both set and incremented`);
  }
  for (const field of ['_id', 'organizationId'])
    if (field in set || field in increment) throw new TypeError(`${field} cannot change`);
  for (const field of uniqueFields(collection))
    if (field in set) checkUnique(collection, field, (set as Fields)[field]);
  checkKinds(collection, set);
}

function checkNotReserved(fields: Fields): void {
  for (const field of RESERVED)
    if (field in fields) throw new TypeError(`the field name ${field} is reserved for the store`);
}

const uniqueFields = ({ indexes, platformIndexes }: Collection<never>): readonly string[] =>
  [...indexes, ...platformIndexes].filter((index) => index.unique).flatMap((index) => index.fields);

function checkUnique(collection: Collection<never>, field: string, value: unknown): void {
  if (!['string', 'number', 'boolean'].includes(typeof value))
    throw new TypeError(`${collection.name}: the unique field ${field} must be text, a number or a boolean`);
}

const OPERATORS = new Set(['in', 'containsAny', 'ne', 'gt', 'gte', 'lt', 'lte']);

/**
 * Rejects a filter that the two engines would understand differently. Each engine calls it before it translates a
 * filter.
 * @throws TypeError on undefined, a bad field name, an unknown operator, a value that is no scalar
 */
export function checkFilter(filter: Readonly<Record<string, unknown>>): void {
  for (const [field, condition] of Object.entries(filter)) {
    if (!NAME.test(field)) throw new TypeError(`bad field name in a filter: ${field}`);
    if (condition === null || typeof condition !== 'object') {
      checkScalar(field, condition);
      continue;
    }
    const operators = Object.entries(condition);
    if (operators.length === 0) throw new TypeError(`empty condition on ${field}`);
    for (const [operator, value] of operators) {
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
  for (const [field, value] of Object.entries(document)) {
    if (!NAME.test(field) || field === '_bsontype') throw new TypeError(`bad field name: ${field}`);
    checkValue(field, value, 0);
  }
}

function checkValue(field: string, value: unknown, depth: number): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number' && Number.isFinite(value)) return;
  if (depth < 8 && Array.isArray(value)) return value.forEach((item) => checkValue(field, item, depth + 1));
  if (depth < 8 && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    for (const [key, item] of Object.entries(value)) {
      if (!NAME.test(key) || key === '_bsontype')
        throw new TypeError(`bad key ${key} in ${field}; user JSON is stored as text`);
      checkValue(field, item, depth + 1);
    }
    return;
  }
  throw new TypeError(`${field} is not plain JSON`);
}
