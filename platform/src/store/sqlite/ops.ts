import type { SQLInputValue } from 'node:sqlite';
import { DuplicateKeyError, ExpectationFailedError, type Changes, type Document, type Op } from '../store.ts';
import { changeSql, conditionSql, type Bound, type UpdateOp } from './change-sql.ts';
import type { Origin } from './group-commit.ts';
import { cellsOf, layoutOf, REST, type Layout } from './layout.ts';
import { compileQueueOp, isQueue } from './queue.ts';
import { makeRowReader } from './rows.ts';
import type { Prepare } from './statements.ts';

const UNIQUE_FAILED = 2067;

/**
 * Turns an operation into a function that runs it on the write connection. Copies what it needs of `op`.
 * @param index position of the operation in its batch
 * @throws TypeError on a bad filter; the function throws DuplicateKeyError and ExpectationFailedError
 */
export function compileOp(prepare: Prepare, op: Op, index: number): () => void {
  if (isQueue(op.collection)) return compileQueueOp(prepare, op);
  const layout = layoutOf(op.collection);
  if (op.kind === 'insert') {
    const cells = cellsOf(layout, op.document as unknown as Fields);
    return () => withDuplicateKeyError(layout, () => prepare(layout.insertSql).run(...cells));
  }
  const statement = changeSql(layout, op);
  const change = statement
    ? runOf(prepare, statement)
    : readAndUpdate(prepare, layout, conditionSql(layout, op), (op as UpdateOp).changes);
  return () => {
    if (!withDuplicateKeyError(layout, change) && !op.optional) throw new ExpectationFailedError(index, layout.name);
  };
}

type Fields = Readonly<Record<string, unknown>>;
/** Runs a change; true when it found its document. */
type Change = () => boolean;

const runOf =
  (prepare: Prepare, { text, values }: Bound): Change =>
  () =>
    prepare(text).run(...values).changes > 0;

function readAndUpdate(prepare: Prepare, layout: Layout, where: Bound, given: Changes<Document>): Change {
  const changes = structuredClone(given);
  const reader = makeRowReader(layout, []);
  const changed = [...Object.keys(changes.set ?? {}), ...Object.keys(changes.increment ?? {})];
  const places = layout.fields.flatMap((field, place) => (changed.includes(field) ? [place] : []));
  const columns = [...places.map((place) => layout.fields[place]!), REST].map((column) => `"${column}" = ?`);
  return () => {
    const found = prepare(`SELECT ${reader.wholeSql} FROM "${layout.name}" WHERE ${where.text}`).get(...where.values);
    if (found === undefined) return false;
    const cells = cellsOf(layout, withChanges(reader.documentOf(found as never, {}), changes));
    const values: SQLInputValue[] = [...places, cells.length - 1].map((place) => cells[place]!);
    prepare(`UPDATE "${layout.name}" SET ${columns.join(', ')} WHERE "_id" = ?`).run(...values, cells[0]!);
    return true;
  };
}

/** The organization of a batch, and about how many bytes it writes: those of its long texts. */
export function originOf(ops: readonly Op[]): Origin {
  let organizationId = '';
  let bytes = 0;
  for (const op of ops) {
    const own = (op.kind === 'insert' ? op.document : op.where) as { organizationId?: string };
    if (op.collection.scope === 'organization') organizationId ||= own.organizationId ?? '';
    bytes += textLength(own);
    if (op.kind === 'update' && op.changes.set) bytes += textLength(op.changes.set);
  }
  return { organizationId, bytes };
}

function textLength(fields: object): number {
  let length = 0;
  for (const field in fields) {
    const value = (fields as Fields)[field];
    if (typeof value === 'string') length += value.length;
  }
  return length;
}

function withChanges(document: Fields, { set, increment = {} }: Changes<Document>): Record<string, unknown> {
  const result: Record<string, unknown> = { ...document, ...set };
  for (const [field, by] of Object.entries(increment)) {
    const from = result[field] === undefined ? 0 : result[field];
    if (typeof from !== 'number') throw new TypeError(`${field} is not a number and cannot be incremented`);
    result[field] = from + by;
  }
  return result;
}

/** Runs a statement; a violation of a unique index becomes a DuplicateKeyError. */
function withDuplicateKeyError<R>(layout: Layout, run: () => R): R {
  try {
    return run();
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== UNIQUE_FAILED) throw error;
    const columns = (error as Error).message.split(': ')[1]?.replaceAll(`${layout.name}.`, '');
    const index = layout.indexes.find((one) => one.unique && one.columns.join(', ') === columns);
    throw new DuplicateKeyError(layout.name, index === undefined ? ['_id'] : index.fields);
  }
}
