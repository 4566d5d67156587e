import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { indexesOf } from '../indexes.ts';
import { whereSql } from './sql.ts';
import {
  DuplicateKeyError,
  ExpectationFailedError,
  type Changes,
  type Collection,
  type Document,
  type Op,
} from '../store.ts';

const UNIQUE_FAILED = 2067;

/** Prepares a statement once. */
export type Prepare = (sql: string) => StatementSync;

export function statementCache(db: DatabaseSync): Prepare {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= 500) statements.clear();
      statements.set(sql, (statement = db.prepare(sql)));
    }
    return statement;
  };
}

/** Turns an operation into work for the write connection. @throws TypeError on a bad filter */
export function compile(prepare: Prepare, op: Op, index: number): () => void {
  const { name } = op.collection;
  if (op.kind === 'insert') {
    const { _id } = op.document;
    const text = JSON.stringify(op.document);
    return () => unique(op.collection, () => prepare(`INSERT INTO "${name}" (id, doc) VALUES (?, ?)`).run(_id, text));
  }
  const where = whereSql(op.where);
  const missed = (): void => {
    if (!op.optional) throw new ExpectationFailedError(index, name);
  };
  if (op.kind === 'remove') {
    return () => {
      if (Number(prepare(`DELETE FROM "${name}" WHERE ${where.text}`).run(...where.values).changes) === 0) missed();
    };
  }
  const changes = structuredClone(op.changes);
  return () => {
    const found = prepare(`SELECT rowid, doc FROM "${name}" WHERE ${where.text}`).get(...where.values);
    if (found === undefined) return missed();
    const text = JSON.stringify(changed(JSON.parse(found.doc as string), changes));
    unique(op.collection, () =>
      prepare(`UPDATE "${name}" SET doc = ? WHERE rowid = ?`).run(text, found.rowid as number),
    );
  };
}

function changed(
  document: Record<string, unknown>,
  { set, increment = {} }: Changes<Document>,
): Record<string, unknown> {
  const result: Record<string, unknown> = { ...document, ...set };
  for (const [field, by] of Object.entries(increment)) {
    const from = result[field] === undefined ? 0 : result[field];
    if (typeof from !== 'number') throw new TypeError(`${field} is not a number and cannot be incremented`);
    result[field] = from + by;
  }
  return result;
}

/** Runs a statement; what a unique index refuses becomes DuplicateKeyError. */
function unique(collection: Collection<never>, run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== UNIQUE_FAILED) throw error;
    const index = indexesOf(collection).find(({ name }) => (error as Error).message.includes(`'${name}'`));
    throw new DuplicateKeyError(collection.name, index === undefined ? ['_id'] : index.fields);
  }
}
