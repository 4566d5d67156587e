import { strict as assert } from 'node:assert';

/**
 * The document store port. Two engines carry it (SQLite, MongoDB); one acceptance suite holds both to the rules below.
 * - A document is plain JSON with a text `_id` (and `organizationId` where the collection is organization-scoped);
 *   user JSON is kept as opaque text in a string field.
 * - Filters are ANDs over top-level fields; an undefined value is a TypeError, never "any".
 * - Unique fields are present and non-null. Dates are ISO-8601 UTC text. Order always ends with `_id`.
 * - A read sees only what is committed.
 */
export interface Document {
  _id: string;
}
export interface OrganizationDocument extends Document {
  organizationId: string;
}

export interface Index<D> {
  fields: readonly (keyof D & string)[];
  unique?: boolean;
}

export interface Collection<D extends Document> {
  readonly name: string;
  /** `organization`: every document carries organizationId and only Store reaches it by organization. */
  readonly scope: 'organization' | 'platform';
  /** In an organization's collection every index starts with organizationId; the engine puts it there. */
  readonly indexes: readonly Index<D>[];
  /** Indexes for PlatformStore: not prefixed with organizationId. */
  readonly platformIndexes: readonly Index<D>[];
  /** Number of the shape that this release writes; rises by one with every release that changes it. */
  readonly shape: number;
  /** From a shape to the next: the fields to set, from the document as it was. Fields of the older shape stay readable until a later shape clears them. */
  readonly upgrades: Readonly<Record<number, (document: never) => Record<string, unknown>>>;
}

export type Scalar = string | number | boolean | null;
export type Condition =
  | Scalar
  | { readonly in: readonly (string | number | boolean)[] }
  | { readonly ne: Scalar }
  | {
      readonly gt?: string | number;
      readonly gte?: string | number;
      readonly lt?: string | number;
      readonly lte?: string | number;
    };
export type Filter<D> = { readonly [K in keyof D & string]?: Condition };
/** Names one document; further conditions are what the writer expects of it. */
export type Expectation<D> = Filter<D> & { readonly _id: string };

export interface FindOptions<D> {
  sort?: readonly (readonly [field: keyof D & string, direction: 'asc' | 'desc'])[];
  /** Keyset: values of the sort fields, then of `_id`, of the last document seen. Fields sorted by are then never null. */
  after?: readonly Scalar[];
  skip?: number;
  limit?: number;
}

export interface Changes<D> {
  set?: Partial<D>;
  increment?: { readonly [K in keyof D & string]?: number };
}

type AnyCollection = Collection<never>;
export type Op =
  | { readonly kind: 'insert'; readonly collection: AnyCollection; readonly document: Document }
  | {
      readonly kind: 'update';
      readonly collection: AnyCollection;
      readonly where: Expectation<Document>;
      readonly changes: Changes<Document>;
      readonly optional: boolean;
    }
  | {
      readonly kind: 'remove';
      readonly collection: AnyCollection;
      readonly where: Expectation<Document>;
      readonly optional: boolean;
    };

/** Inserts; a document with this `_id` or unique fields is DuplicateKeyError. */
export const insert = <D extends Document>(collection: Collection<D>, document: D): Op => ({
  kind: 'insert',
  collection: collection as unknown as AnyCollection,
  document,
});
/** Changes exactly one document, or fails the batch with ExpectationFailedError (`optional`: does nothing instead). */
export const update = <D extends Document>(
  collection: Collection<D>,
  where: Expectation<D>,
  changes: Changes<D>,
  { optional = false } = {},
): Op => ({
  kind: 'update',
  collection: collection as unknown as AnyCollection,
  where: where,
  changes: changes,
  optional,
});
/** Removes exactly one document, or fails the batch with ExpectationFailedError (`optional`: does nothing instead). */
export const remove = <D extends Document>(
  collection: Collection<D>,
  where: Expectation<D>,
  { optional = false } = {},
): Op => ({ kind: 'remove', collection: collection as unknown as AnyCollection, where: where, optional });

/** What a service uses for its organizations' documents: the organization is the first argument of every method. */
export interface Store {
  findOne<D extends OrganizationDocument>(
    organizationId: string,
    collection: Collection<D>,
    filter: Filter<D>,
  ): Promise<D | undefined>;
  find<D extends OrganizationDocument>(
    organizationId: string,
    collection: Collection<D>,
    filter: Filter<D>,
    options?: FindOptions<D>,
  ): Promise<D[]>;
  count<D extends OrganizationDocument>(
    organizationId: string,
    collection: Collection<D>,
    filter: Filter<D>,
  ): Promise<number>;
  /** One atomic batch: all of it durable, or none. Inserts must carry this organizationId. Ops on platform collections (outbox) may ride along. */
  apply(organizationId: string, ops: readonly Op[]): Promise<void>;
}

/** What looks across organizations. test/architecture.test.ts holds the closed list of files that may name it. */
export interface PlatformStore {
  findOne<D extends Document>(collection: Collection<D>, filter: Filter<D>): Promise<D | undefined>;
  find<D extends Document>(collection: Collection<D>, filter: Filter<D>, options?: FindOptions<D>): Promise<D[]>;
  count<D extends Document>(collection: Collection<D>, filter: Filter<D>): Promise<number>;
  apply(ops: readonly Op[]): Promise<void>;
  /** The store's time in milliseconds: the only clock that leases go by. */
  now(): Promise<number>;
}

export interface OpenStore {
  readonly store: Store;
  readonly platformStore: PlatformStore;
  /** How many rows a contended counter is spread over: 1 where batches never abort each other. */
  readonly counterShards: number;
  /** True where this process alone can own the data (embedded), so that leases of an earlier process are void. */
  readonly exclusive: boolean;
  /** Writes documents of older shapes in the present one; resolves to their number. */
  migrate(signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** A unique index refused an insert or update. `fields` without organizationId; ['_id'] for the primary key. */
export class DuplicateKeyError extends Error {
  override readonly name = 'DuplicateKeyError';
  readonly collection: string;
  readonly fields: readonly string[];
  constructor(collection: string, fields: readonly string[]) {
    super(`duplicate ${fields.join(', ')} in ${collection}`);
    this.collection = collection;
    this.fields = fields;
  }
}

/** An update or remove did not find the one document that it expects. `index` is its place in the batch. */
export class ExpectationFailedError extends Error {
  override readonly name = 'ExpectationFailedError';
  readonly index: number;
  readonly collection: string;
  constructor(index: number, collection: string) {
    super(`expectation ${index} of the batch failed in ${collection}`);
    this.index = index;
    this.collection = collection;
  }
}

const NAME = /^[A-Za-z_]\w*$/;
const OPERATORS = new Set(['in', 'ne', 'gt', 'gte', 'lt', 'lte']);

/** Declares a collection. Names match `^[A-Za-z_]\w*$`. */
export function collection<D extends Document>(
  name: string,
  spec: Pick<Collection<D>, 'scope'> & Partial<Collection<D>>,
): Collection<D> {
  assert.match(name, NAME);
  const { scope, indexes = [], platformIndexes = [], shape = 1, upgrades = {} } = spec;
  for (let from = 1; from < shape; from++) assert(upgrades[from], `${name} has no upgrade from shape ${from}`);
  for (const index of [...indexes, ...platformIndexes]) for (const field of index.fields) assert.match(field, NAME);
  // what is left of older shapes is found without reading all
  const byShape = shape > 1 ? [{ fields: ['shape' as keyof D & string] }] : [];
  return { name, scope, indexes, platformIndexes: [...platformIndexes, ...byShape], shape, upgrades };
}

/**
 * Refuses whatever an engine would read otherwise than it was meant. Both engines call it first.
 * @throws TypeError on undefined, a field name or operator outside the closed lists, a value that is no scalar.
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
      } else if (operator !== 'ne' && typeof value !== 'string' && typeof value !== 'number')
        throw new TypeError(`${field}: ${operator} takes text or a number`);
      else checkScalar(field, value);
    }
  }
}

/**
 * The whole order of a find: the sort fields, then `_id` in the direction of the last of them. Both engines call it.
 * @throws TypeError on a bad field name, limit, skip or keyset
 */
export function orderOf<D>({
  sort = [],
  after,
  skip = 0,
  limit = 1,
}: FindOptions<D>): readonly (readonly [field: string, direction: 'asc' | 'desc'])[] {
  for (const [field, direction] of sort)
    if (!NAME.test(field) || !/^(asc|desc)$/.test(direction)) throw new TypeError(`bad sort: ${field} ${direction}`);
  if (!Number.isSafeInteger(skip) || skip < 0 || !Number.isSafeInteger(limit) || limit < 1)
    throw new TypeError(`bad skip ${skip} or limit ${limit}`);
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

/** Refuses documents that one engine would keep and the other change. @throws TypeError */
export function checkDocument(document: Readonly<Record<string, unknown>>): void {
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
