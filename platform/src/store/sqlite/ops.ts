import type { SQLInputValue } from 'node:sqlite';
import { DuplicateKeyError, ExpectationFailedError, type Changes, type Document, type Op } from '../store.ts';
import { cellOf, fitsCell } from './cells.ts';
import type { Origin } from './group-commit.ts';
import { cellsOf, layoutOf, REST, type Layout } from './layout.ts';
import { compileQueueOp, isQueue } from './queue.ts';
import { makeRowReader } from './rows.ts';
import { bind, shapeOf, whereSql, type Sql } from './sql.ts';
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
  const where = conditionOf(layout, op.where);
  const change =
    op.kind === 'remove'
      ? runOf(prepare, { text: `DELETE FROM "${layout.name}" WHERE ${where.text}`, values: where.values })
      : (updateInPlace(prepare, layout, where, op.changes) ?? readAndUpdate(prepare, layout, where, op.changes));
  return () => {
    if (!withDuplicateKeyError(layout, change) && !op.optional) throw new ExpectationFailedError(index, layout.name);
  };
}

type Fields = Readonly<Record<string, unknown>>;
/** SQL and the values of its placeholders. */
interface Bound {
  text: string;
  values: readonly SQLInputValue[];
}

/** By the shape of the filter. */
const conditions = new WeakMap<Layout, Map<string, Sql>>();

/** @throws TypeError on a bad filter */
function conditionOf(layout: Layout, filter: Fields): Bound {
  const shape = shapeOf(filter);
  const made = conditions.get(layout) ?? new Map<string, Sql>();
  conditions.set(layout, made);
  let where = made.get(shape);
  if (where === undefined) made.set(shape, (where = whereSql(layout, filter)));
  return { text: where.text, values: bind(where.values, filter) };
}

/** Runs a change; true when it found its document. */
type Change = () => boolean;

const runOf =
  (prepare: Prepare, { text, values }: Bound): Change =>
  () =>
    prepare(text).run(...values).changes > 0;

/** The change as one statement; undefined when it increments what is not in a column of numbers. */
function updateInPlace(
  prepare: Prepare,
  layout: Layout,
  where: Bound,
  { set = {}, increment = {} }: Changes<Document>,
): Change | undefined {
  const terms: Bound[] = [];
  const others: Bound[] = [];
  for (const [field, value] of Object.entries<unknown>(set)) {
    const fits = fitsCell(value);
    if (layout.has(field))
      terms.push({ text: `"${field}" = ?`, values: [fits ? cellOf(value, layout.isId(field)) : null] });
    // A value in a column hides what the last column has of the same field.
    if (!fits || !layout.has(field)) others.push({ text: `'$.${field}', json(?)`, values: [JSON.stringify(value)] });
  }
  for (const [field, by] of Object.entries<number>(increment)) {
    if (layout.kindOf(field) !== 'number') return undefined;
    terms.push({ text: `"${field}" = coalesce("${field}", 0) + ?`, values: [cellOf(by, false)] });
  }
  if (others.length > 0)
    terms.push({
      text: `"${REST}" = json_set(coalesce("${REST}", '{}'), ${others.map(({ text }) => text).join(', ')})`,
      values: others.flatMap(({ values }) => values),
    });
  if (terms.length === 0) return undefined;
  return runOf(prepare, {
    text: `UPDATE "${layout.name}" SET ${terms.map(({ text }) => text).join(', ')} WHERE ${where.text}`,
    values: [...terms.flatMap(({ values }) => values), ...where.values],
  });
}

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
    const written =
      op.kind === 'insert' ? [op.document] : [op.where, op.kind === 'update' ? op.changes.set : undefined];
    const [{ organizationId: own }] = written as [{ organizationId?: string }];
    if (op.collection.scope === 'organization') organizationId ||= own ?? '';
    for (const fields of written)
      for (const value of Object.values(fields ?? {})) if (typeof value === 'string') bytes += value.length;
  }
  return { organizationId, bytes };
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
