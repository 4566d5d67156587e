import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { indexesOf } from '../indexes.ts';
import type { Origin } from './group-commit.ts';
import { compileQueueOp, isQueue } from './queue.ts';
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

/** Prepares a statement, or takes it from a cache. */
export type Prepare = (sql: string) => StatementSync;

const MAX_STATEMENTS = 500;

/** Prepares each statement once. */
export function statementCache(db: DatabaseSync): Prepare {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= MAX_STATEMENTS) statements.clear();
      statements.set(sql, (statement = db.prepare(sql)));
    }
    return statement;
  };
}

/**
 * Turns an operation into a function that runs it on the write connection. Copies what it needs of `op`.
 * @param index position of the operation in its batch
 * @throws TypeError on a bad filter; the function throws DuplicateKeyError and ExpectationFailedError
 */
export function compileOp(prepare: Prepare, op: Op, index: number): () => void {
  if (isQueue(op.collection)) return compileQueueOp(prepare, op);
  const { name } = op.collection;
  if (op.kind === 'insert') {
    const { _id } = op.document;
    const text = JSON.stringify(op.document);
    return () =>
      withDuplicateKeyError(op.collection, () =>
        prepare(`INSERT INTO "${name}" (id, doc) VALUES (?, ?)`).run(_id, text),
      );
  }
  const where = whereSql(op.where);
  const notFound = (): void => {
    if (!op.optional) throw new ExpectationFailedError(index, name);
  };
  if (op.kind === 'remove') {
    return () => {
      if (Number(prepare(`DELETE FROM "${name}" WHERE ${where.text}`).run(...where.values).changes) === 0) notFound();
    };
  }
  const changes = structuredClone(op.changes);
  return () => {
    const found = prepare(`SELECT rowid, doc FROM "${name}" WHERE ${where.text}`).get(...where.values);
    if (found === undefined) return notFound();
    const text = JSON.stringify(withChanges(JSON.parse(found.doc as string), changes));
    withDuplicateKeyError(op.collection, () =>
      prepare(`UPDATE "${name}" SET doc = ? WHERE rowid = ?`).run(text, found.rowid as number),
    );
  };
}

/** The organization of a batch, and about how many bytes it writes: those of its long texts. */
export function originOf(ops: readonly Op[]): Origin {
  let organizationId = '';
  let bytes = 0;
  for (const op of ops) {
    const written =
      op.kind === 'insert' ? [op.document] : [op.where, op.kind === 'update' ? op.changes.set : undefined];
    const [{ organizationId: own }] = written as [{ organizationId?: string }];
    if (op.collection.scope === 'organization') organizationId ||= own ?? '';
    for (const fields of written)
      for (const value of Object.values(fields ?? {})) if (typeof value === 'string') bytes += value.length;
  }
  return { organizationId, bytes };
}

function withChanges(
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

/** Runs a statement; a violation of a unique index becomes a DuplicateKeyError. */
function withDuplicateKeyError(collection: Collection<never>, run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== UNIQUE_FAILED) throw error;
    const index = indexesOf(collection).find(({ name }) => (error as Error).message.includes(`'${name}'`));
    throw new DuplicateKeyError(collection.name, index === undefined ? ['_id'] : index.fields);
  }
}
