import type { SQLInputValue } from 'node:sqlite';
import type { Op } from '../store.ts';
import { cellOf, fitsCell } from './cells.ts';
import { REST, type Layout } from './layout.ts';
import { bind, shapeOf, whereSql, type Sql } from './sql.ts';

/** SQL and the values of its placeholders. */
export interface Bound {
  text: string;
  values: SQLInputValue[];
}

export type UpdateOp = Extract<Op, { kind: 'update' }>;
type ChangeOp = Exclude<Op, { kind: 'insert' }>;
type Fields = Readonly<Record<string, unknown>>;

/** The statement of all changes of one shape, and the order of its values: these fields, then those of the filter. */
interface Plan {
  /** Undefined when the change cannot be one statement. */
  text: string | undefined;
  /** What follows WHERE. */
  condition: string;
  /** What is set in a column. */
  cells: readonly string[];
  increments: readonly string[];
  /** What is set in the last column, as JSON. */
  others: readonly string[];
  where: Sql['values'];
}

/** What is set may have the order of fields of a stored document, so nothing else bounds the number of shapes. */
const MAX_PLANS = 200;

/** By the shape of the change. */
const plans = new WeakMap<Layout, Map<string, Plan>>();

/**
 * The change as one statement; undefined when it changes nothing, or increments what is in no column of numbers.
 * @throws TypeError on a bad filter
 */
export function changeSql(layout: Layout, op: ChangeOp): Bound | undefined {
  const plan = planOf(layout, op);
  if (plan.text === undefined) return undefined;
  const values: SQLInputValue[] = [];
  if (op.kind === 'update') {
    const { set, increment } = changesOf(op);
    for (const field of plan.cells) values.push(cellOf(set[field] as string, layout.isId(field)));
    for (const field of plan.increments) values.push(cellOf(increment[field] as number, false));
    for (const field of plan.others) values.push(JSON.stringify(set[field]));
  }
  for (const value of plan.where) values.push(value(op.where, {}));
  return { text: plan.text, values };
}

function changesOf({ changes }: UpdateOp): { set: Fields; increment: Fields } {
  const { set = {}, increment = {} } = changes;
  return { set, increment };
}

function planOf(layout: Layout, op: ChangeOp): Plan {
  let shape = `${op.kind} ${shapeOf(op.where)}`;
  if (op.kind === 'update') {
    const { set, increment } = changesOf(op);
    for (const field in set) shape += fitsCell(set[field]) ? ` ${field}` : ` ${field}:json`;
    for (const field in increment) shape += ` +${field}`;
  }
  let ofLayout = plans.get(layout);
  if (ofLayout === undefined) plans.set(layout, (ofLayout = new Map()));
  let plan = ofLayout.get(shape);
  if (plan === undefined) {
    if (ofLayout.size >= MAX_PLANS) ofLayout.clear();
    ofLayout.set(shape, (plan = makePlan(layout, op)));
  }
  return plan;
}

function makePlan(layout: Layout, op: ChangeOp): Plan {
  const { text: condition, values: where } = whereSql(layout, op.where);
  if (op.kind === 'remove') {
    const text = `DELETE FROM "${layout.name}" WHERE ${condition}`;
    return { text, condition, cells: [], increments: [], others: [], where };
  }
  const { set, increment } = changesOf(op);
  const increments = Object.keys(increment);
  const cells = Object.keys(set).filter((field) => layout.has(field) && fitsCell(set[field]));
  const others = Object.keys(set).filter((field) => !cells.includes(field));
  // A value in a column hides what the last column has of the same field.
  const emptied = others.filter((field) => layout.has(field));
  const terms = [
    ...cells.map((field) => `"${field}" = ?`),
    ...increments.map((field) => `"${field}" = coalesce("${field}", 0) + ?`),
    ...emptied.map((field) => `"${field}" = NULL`),
    ...(others.length === 0
      ? []
      : [`"${REST}" = json_set(coalesce("${REST}", '{}'), ${others.map((field) => `'$.${field}', json(?)`).join()})`]),
  ];
  const isOne = terms.length > 0 && increments.every((field) => layout.kindOf(field) === 'number');
  const text = isOne ? `UPDATE "${layout.name}" SET ${terms.join(', ')} WHERE ${condition}` : undefined;
  return { text, condition, cells, increments, others, where };
}

/** What follows WHERE in the change. @throws TypeError on a bad filter */
export function conditionSql(layout: Layout, op: ChangeOp): Bound {
  const { condition, where } = planOf(layout, op);
  return { text: condition, values: bind(where, op.where) };
}
