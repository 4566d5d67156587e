import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { checkFilter } from '../checks.ts';
import type { Rows } from './rows.ts';
import type { Collection, FindOptions, Op } from '../store.ts';
import { LIMIT_VALUE } from './statements.ts';

/**
 * A queue (see Collection) is a table whose integer key is the order of commit: a new row is its last, the oldest rows
 * are its first, and it has no index. A key is never used again. In documents, `_id` is the key as text.
 */
type Queue = Collection<never> & { readonly queue: readonly string[] };
export const isQueue = (collection: Collection<never>): collection is Queue => collection.queue !== undefined;

type Prepare = (sql: string) => { run(...values: SQLInputValue[]): unknown };

const columnsOf = ({ queue }: Queue): string => queue.map((field) => `"${field}"`).join(', ');

/** Makes the table; moves the rows of a release that stored them as documents, in the order of their ids. */
export function prepareQueue(db: DatabaseSync, queue: Queue): void {
  const { name } = queue;
  const columns = db.prepare('SELECT name FROM pragma_table_info(?)').all(name);
  const former = `${name} of documents`;
  const isFormer = columns.some((column) => column.name === 'doc');
  if (isFormer) db.exec(`ALTER TABLE "${name}" RENAME TO "${former}"`);
  const declared = queue.queue.map((field) => `"${field}" TEXT NOT NULL`).join(', ');
  db.exec(`CREATE TABLE IF NOT EXISTS "${name}" (key INTEGER PRIMARY KEY AUTOINCREMENT, ${declared}) STRICT`);
  if (!isFormer) return;
  const values = queue.queue.map((field) => `doc ->> '${field}'`).join(', ');
  db.exec(`INSERT INTO "${name}" (${columnsOf(queue)}) SELECT ${values} FROM "${former}" ORDER BY id;
    DROP TABLE "${former}"`);
}

/** Compiles the insertion of a document, or its removal by `_id` alone. @throws TypeError for any other operation */
export function compileQueueOp(prepare: Prepare, op: Op): () => void {
  const collection = op.collection as Queue;
  if (op.kind === 'insert') {
    const document = op.document as unknown as Record<string, string>;
    const values = collection.queue.map((field) => document[field]!);
    const sql = `INSERT INTO "${collection.name}" (${columnsOf(collection)}) VALUES (${values.map(() => '?')})`;
    return () => void prepare(sql).run(...values);
  }
  return compileRemovals(prepare, collection, [op]);
}

/** When the batch only removes from one queue: the removal as one statement. */
export function compileQueueRemovals(prepare: Prepare, ops: readonly Op[]): (() => void) | undefined {
  const collection = ops[0]?.collection;
  if (!collection || !isQueue(collection)) return undefined;
  if (!ops.every((op) => op.collection === collection && op.kind === 'remove')) return undefined;
  return compileRemovals(prepare, collection, ops);
}

function compileRemovals(prepare: Prepare, { name }: Queue, ops: readonly Op[]): () => void {
  const keys = ops.map((op) => {
    if (op.kind !== 'remove' || !op.optional || Object.keys(op.where).length !== 1)
      throw new TypeError(`${name} is a queue: its documents are inserted, and removed by _id if they are there`);
    return Number(op.where._id);
  });
  const sql = `DELETE FROM "${name}" WHERE key IN (SELECT value FROM json_each(?))`;
  return () => void prepare(sql).run(JSON.stringify(keys));
}

/** Finds documents in the order of commit. @throws TypeError on a bad filter, or any option but `limit` */
export function findInQueue(
  rows: Rows,
  collection: Queue,
  filter: Readonly<Record<string, unknown>>,
  { limit = -1, ...others }: FindOptions<never>,
): unknown[] {
  if (Object.values(others).some((option) => option !== undefined))
    throw new TypeError(`${collection.name} is a queue: it is read in the order of commit`);
  const { text, values } = whereOf(filter);
  const found = rows(
    `SELECT key, ${columnsOf(collection)} FROM "${collection.name}" WHERE ${text} ORDER BY key LIMIT ${LIMIT_VALUE}`,
    [...values, limit],
  );
  return found.map(([key, ...values]) => ({
    _id: String(key),
    ...Object.fromEntries(collection.queue.map((field, place) => [field, values[place]])),
  }));
}

export function countInQueue(
  rows: Rows,
  { name }: Queue,
  filter: Readonly<Record<string, unknown>>,
  limit = -1,
): number {
  const { text, values } = whereOf(filter);
  const counted = `SELECT 1 FROM "${name}" WHERE ${text} LIMIT ${LIMIT_VALUE}`;
  return rows(`SELECT count(*) FROM (${counted})`, [...values, limit])[0]![0] as number;
}

const OPERATORS: Record<string, string> = { ne: 'IS NOT', gt: '>', gte: '>=', lt: '<', lte: '<=' };

function whereOf(filter: Readonly<Record<string, unknown>>): { text: string; values: SQLInputValue[] } {
  checkFilter(filter);
  const terms = Object.entries(filter).flatMap(([field, condition]): { text: string; value: SQLInputValue }[] => {
    const column = field === '_id' ? 'key' : `"${field}"`;
    const operand = (value: unknown): SQLInputValue => (field === '_id' ? Number(value) : (value as SQLInputValue));
    if (condition === null || typeof condition !== 'object')
      return [{ text: `${column} IS ?`, value: operand(condition) }];
    return Object.entries(condition).map(([operator, value]) =>
      operator === 'in'
        ? {
            text: `${column} IN (SELECT value FROM json_each(?))`,
            value: JSON.stringify((value as unknown[]).map(operand)),
          }
        : { text: `${column} ${OPERATORS[operator]} ?`, value: operand(value) },
    );
  });
  return { text: terms.map(({ text }) => text).join(' AND ') || 'true', values: terms.map(({ value }) => value) };
}
