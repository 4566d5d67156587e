import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { indexesOf } from './sqlite-schema.ts';
import { whereSql } from './sqlite-sql.ts';
import { checkDocument, DuplicateKey, ExpectationFailed, type Changes, type Collection, type Document, type Op } from './store.ts';

const UNIQUE_FAILED = 2067;

/** Prepares a statement once. */
export type Prepare = (sql: string) => StatementSync;

export function statementCache(db: DatabaseSync): Prepare {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= 500) statements.clear();
      statements.set(sql, statement = db.prepare(sql));
    }
    return statement;
  };
}

/** Checks an operation and turns it into work for the write connection. @throws TypeError */
export function compile(prepare: Prepare, op: Op, index: number): () => void {
  const { name } = op.collection;
  if (op.kind === 'insert') {
    const { _id } = op.document;
    checkInsert(op.collection, op.document);
    const text = JSON.stringify(op.document);
    return () => unique(op.collection, () => prepare(`INSERT INTO "${name}" (id, doc) VALUES (?, ?)`).run(_id, text));
  }
  if (typeof op.where._id !== 'string') throw new TypeError('an update or remove names one document by _id');
  const where = whereSql(op.where);
  const missed = (): void => {
    if (!op.optional) throw new ExpectationFailed(index, name);
  };
  if (op.kind === 'remove') {
    return () => {
      if (Number(prepare(`DELETE FROM "${name}" WHERE ${where.text}`).run(...where.values).changes) === 0) missed();
    };
  }
  checkChanges(op.collection, op.changes);
  return () => {
    const found = prepare(`SELECT rowid, doc FROM "${name}" WHERE ${where.text}`).get(...where.values);
    if (found === undefined) return missed();
    const text = JSON.stringify(changed(JSON.parse(found.doc as string), op.changes));
    unique(op.collection, () => prepare(`UPDATE "${name}" SET doc = ? WHERE rowid = ?`).run(text, found.rowid as number));
  };
}

function changed(document: Record<string, unknown>, { set, increment = {} }: Changes<Document>): Record<string, unknown> {
  const result: Record<string, unknown> = { ...document, ...set };
  for (const [field, by] of Object.entries(increment)) {
    const from = result[field] === undefined ? 0 : result[field];
    if (typeof from !== 'number') throw new TypeError(`${field} is not a number and cannot be incremented`);
    result[field] = from + by;
  }
  return result;
}

function checkInsert(collection: Collection<never>, document: Document): void {
  checkDocument(document as unknown as Record<string, unknown>);
  const given = document as unknown as Record<string, unknown>;
  for (const field of ['_id', ...(collection.scope === 'organization' ? ['organizationId'] : [])]) {
    if (typeof given[field] !== 'string' || given[field] === '') throw new TypeError(`${collection.name}: ${field} must be text`);
  }
  for (const field of uniqueFields(collection)) checkUnique(collection, field, given[field]);
}

function checkChanges(collection: Collection<never>, { set = {}, increment = {} }: Changes<Document>): void {
  checkDocument(set);
  for (const [field, by] of Object.entries(increment)) {
    if (!Number.isFinite(by)) throw new TypeError(`${field} is incremented by a finite number`);
    if (field in set) throw new TypeError(`${field} is both set and incremented`);
  }
  for (const field of ['_id', 'organizationId']) if (field in set || field in increment) throw new TypeError(`${field} cannot change`);
  for (const field of uniqueFields(collection)) if (field in set) checkUnique(collection, field, (set as Record<string, unknown>)[field]);
}

const uniqueFields = ({ indexes, platformIndexes }: Collection<never>): readonly string[] =>
  [...indexes, ...platformIndexes].filter((index) => index.unique).flatMap((index) => index.fields);

function checkUnique(collection: Collection<never>, field: string, value: unknown): void {
  if (!['string', 'number', 'boolean'].includes(typeof value)) throw new TypeError(`${collection.name}: the unique field ${field} must be text, a number or a boolean`);
}

/** Runs a statement; what a unique index refuses becomes DuplicateKey. */
function unique(collection: Collection<never>, run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== UNIQUE_FAILED) throw error;
    const index = indexesOf(collection).find(({ name }) => (error as Error).message.includes(`'${name}'`));
    throw new DuplicateKey(collection.name, index === undefined ? ['_id'] : index.fields);
  }
}
