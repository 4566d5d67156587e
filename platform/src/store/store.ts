import { strict as assert } from 'node:assert';

/**
 * The document store port. Two engines implement it (SQLite, MongoDB); one acceptance suite tests both for these rules:
 * - A document is plain JSON with a text `_id` (and `organizationId` where the collection is organization-scoped);
 *   user JSON is stored as opaque text in a string field.
 * - A filter is an AND over top-level fields; an undefined value is a TypeError, never "any".
 * - Unique fields are present and non-null. Dates are ISO-8601 UTC text. Every sort order ends with `_id`.
 * - organizationId is compared for equality only: engines may order it differently.
 * - A read sees committed data only, but not always of one moment: one of large or many documents gives way to other
 *   organizations (turns.ts), and a document that is added or removed meanwhile may be missing.
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
  /**
   * For queries that ask for `null` (or an absent value) in the first field, or never do: an engine may leave the other
   * documents out of the index.
   */
  only?: 'null' | 'present';
  /** For `containsAny`: the last field is a list, whose elements are indexed. Only with scope `organization`. */
  elements?: true;
  /**
   * The last field has few distinct values, and every document has one. SQLite then serves pages in the order of `_id`
   * that do not filter by it from this index; MongoDB gets a second index without the field.
   */
  few?: true;
}

/**
 * What a field holds, where it is neither null nor absent. `id`: a UUID in lower case; ranges and keysets of it take
 * UUIDs, too. `text`: at most MAX_TEXT characters. `long`: a text of any length, such as user JSON.
 */
export type FieldKind = 'id' | 'text' | 'long' | 'number';
export const MAX_TEXT = 1_024;
type FieldKindOf<T> =
  NonNullable<T> extends string ? 'id' | 'text' | 'long' : NonNullable<T> extends number ? 'number' : never;
type Columns<D> = { readonly [K in keyof D & string]?: FieldKindOf<D[K]> };

export interface Collection<D extends Document> {
  readonly name: string;
  /**
   * `organization`: every document has an organizationId, and Store reads and writes those of one organization only.
   */
  readonly scope: 'organization' | 'platform';
  /**
   * Fields that hold one kind of value: an engine with tables gives each a column of its own, so that it is stored as
   * it is and changed without the rest of the document. For user JSON, for what changes often, and for what there is
   * most of; a short field elsewhere is cheaper to read as a part of the rest. The longest texts come last.
   */
  readonly columns: Readonly<Record<string, FieldKind>>;
  /** With scope `organization` the store puts organizationId in front of these fields. */
  readonly indexes: readonly Index<D>[];
  /** Indexes for queries of PlatformStore, without organizationId in front. */
  readonly platformIndexes: readonly Index<D>[];
  /**
   * For a queue: its fields beside `_id`, all text. Documents of a queue are inserted, read in order, and removed by
   * `_id` if they are there. The order is that of `_id`: on SQLite that of commit, where the store replaces the `_id`
   * of an inserted document; on MongoDB that of the `_id`s that the writers give.
   */
  readonly queue?: readonly (keyof D & string)[];
  /** The version that this release writes: 1, and one more with every release whose new fields need a value. */
  readonly version: number;
  /**
   * By version: computes, from a document of that version, the fields to set for the next one. Fields that the next
   * one no longer needs stay until an upgrade sets them to null, so that replicas of the previous release can still
   * read them.
   */
  readonly upgrades: Readonly<Record<number, (document: never) => Record<string, unknown>>>;
}

export type Scalar = string | number | boolean | null;
export type Condition =
  | Scalar
  | { readonly in: readonly (string | number | boolean)[] }
  /** The field is a list with at least one of these elements. */
  | { readonly containsAny: readonly string[] }
  | { readonly ne: Scalar }
  | {
      readonly gt?: string | number;
      readonly gte?: string | number;
      readonly lt?: string | number;
      readonly lte?: string | number;
    };
export type Filter<D> = { readonly [K in keyof D & string]?: Condition };
/** Names one document by its `_id`; further conditions say in what state the writer expects it. */
export type Expectation<D> = Filter<D> & { readonly _id: string };

export interface FindOptions<D> {
  sort?: readonly (readonly [field: keyof D & string, direction: 'asc' | 'desc'])[];
  /**
   * Keyset: the values of the sort fields, then of `_id`, of the last document seen. No sort field may be null then.
   */
  after?: readonly Scalar[];
  skip?: number;
  limit?: number;
  /** Columns of long texts that the caller does not need: the documents come without them. */
  omit?: readonly (keyof D & string)[];
  /**
   * The most bytes that the documents may have together, as the engine stores them: at least those of their texts. If
   * they have more, nothing is read and REPLY_TOO_LARGE says how many.
   */
  maxBytes?: number | undefined;
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

/** Inserts a document; fails the batch with DuplicateKeyError when its `_id` or a unique key is taken. */
export const insert = <D extends Document>(collection: Collection<D>, document: D): Op => ({
  kind: 'insert',
  collection: collection as unknown as AnyCollection,
  document,
});
/** Changes exactly one document, or fails the batch with ExpectationFailedError (with `optional`: does nothing). */
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
/** Removes exactly one document, or fails the batch with ExpectationFailedError (with `optional`: does nothing). */
export const remove = <D extends Document>(
  collection: Collection<D>,
  where: Expectation<D>,
  { optional = false } = {},
): Op => ({ kind: 'remove', collection: collection as unknown as AnyCollection, where: where, optional });

/** Reads and writes the documents of one organization, which is the first argument of every method. */
export interface Store {
  findOne<D extends OrganizationDocument>(
    organizationId: string,
    collection: Collection<D>,
    filter: Filter<D>,
    options?: Pick<FindOptions<D>, 'maxBytes'>,
  ): Promise<D | undefined>;
  /** @throws ServiceError REPLY_TOO_LARGE, see FindOptions; TypeError */
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
  /** The sum of a field that is a column of numbers; of a document without the field, nothing is added. */
  sum<D extends OrganizationDocument>(
    organizationId: string,
    collection: Collection<D>,
    filter: Filter<D>,
    field: keyof D & string,
  ): Promise<number>;
  /**
   * One atomic batch: durable as a whole or not applied at all. Inserted documents must have this organizationId. The
   * batch may also write platform collections, such as the outbox.
   * @throws DuplicateKeyError, ExpectationFailedError, TypeError
   */
  apply(organizationId: string, ops: readonly Op[]): Promise<void>;
}

/**
 * Reads and writes across organizations. test/architecture.test.ts has the closed list of the files that may use it.
 */
export interface PlatformStore {
  findOne<D extends Document>(collection: Collection<D>, filter: Filter<D>): Promise<D | undefined>;
  find<D extends Document>(collection: Collection<D>, filter: Filter<D>, options?: FindOptions<D>): Promise<D[]>;
  /** @param options.limit counts no further */
  count<D extends Document>(
    collection: Collection<D>,
    filter: Filter<D>,
    options?: { limit?: number | undefined },
  ): Promise<number>;
  apply(ops: readonly Op[]): Promise<void>;
  /** The store's time, in milliseconds since the epoch: leases use no other clock. */
  now(): Promise<number>;
}

export interface OpenStore {
  readonly store: Store;
  readonly platformStore: PlatformStore;
  /** How many documents a contended counter is spread over: 1 on an engine whose batches never abort each other. */
  readonly counterShards: number;
  /**
   * True when no other process can have the data open (embedded engine): leases of an earlier process are void then.
   */
  readonly exclusive: boolean;
  /**
   * Only for an engine whose database file has a write-ahead log: cuts back a log that has grown. Resolves to the bytes
   * that remain above its limit, while another process reads an older state of the file; normally 0.
   */
  cutBackLog?(): Promise<number>;
  /** Writes documents of older versions in the present one; resolves to their number. */
  migrate(signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** A unique index rejected an insert or update. `fields` are without organizationId; ['_id'] is the primary key. */
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

/** An update or remove did not find the one document that it expects. `index` is its position in the batch. */
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

/** What a collection, a field and a member of a stored object may be named. */
export const NAME = /^[A-Za-z_]\w*$/;
/** Declares a collection. @throws AssertionError on a bad name, or a version without the upgrades to it */
export function collection<D extends Document>(
  name: string,
  spec: Pick<Collection<D>, 'scope'> & Partial<Omit<Collection<D>, 'columns'>> & { columns?: Columns<D> },
): Collection<D> {
  assert.match(name, NAME);
  const { scope, columns = {}, indexes = [], platformIndexes = [], version = 1, upgrades = {}, queue } = spec;
  for (let from = 1; from < version; from++) assert(upgrades[from], `${name} has no upgrade from version ${from}`);
  for (const index of [...indexes, ...platformIndexes]) for (const field of index.fields) assert.match(field, NAME);
  for (const field of Object.keys(columns)) assert.match(field, NAME);
  // Lets a migration find documents of older versions without reading all.
  const byVersion = version > 1 ? [{ fields: ['shape' as keyof D & string] }] : [];
  return {
    name,
    scope,
    columns: columns,
    indexes,
    platformIndexes: [...platformIndexes, ...byVersion],
    version,
    upgrades,
    ...(queue && { queue }),
  };
}
