import type { SQLInputValue } from 'node:sqlite';
import { checkFilter, orderOf, type FindOptions, type Scalar } from '../store.ts';

/** A piece of SQL with the values of its question marks. Names come from declarations or checked filters only. */
export interface Sql {
  text: string;
  values: SQLInputValue[];
}

const RANGES: Record<string, string> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

/** The expression of a field; an index serves a query only when both spell it alike. */
export const column = (field: string): string => (field === '_id' ? 'id' : `json_extract(doc,'$.${field}')`);

/** json_extract gives booleans as 1 and 0, and so do we. */
const bound = (value: Scalar): SQLInputValue => (typeof value === 'boolean' ? Number(value) : value);

/** @throws TypeError see checkFilter */
export function whereSql(filter: Readonly<Record<string, unknown>>): Sql {
  checkFilter(filter);
  const terms: Sql[] = Object.entries(filter).flatMap(([field, condition]) =>
    condition === null || typeof condition !== 'object'
      ? [equals(column(field), condition as Scalar)]
      : Object.entries(condition).map(([operator, value]) => compare(column(field), operator, value)),
  );
  return and(terms);
}

const equals = (expression: string, value: Scalar): Sql =>
  value === null
    ? { text: `${expression} IS NULL`, values: [] }
    : { text: `${expression} = ?`, values: [bound(value)] };

function compare(expression: string, operator: string, value: unknown): Sql {
  // One statement for lists of any length, so that the statement cache stays small.
  if (operator === 'in')
    return { text: `${expression} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(value)] };
  return {
    text: `${expression} ${operator === 'ne' ? 'IS NOT' : RANGES[operator]} ?`,
    values: [bound(value as Scalar)],
  };
}

const and = (terms: readonly Sql[]): Sql => ({
  text: terms.map((term) => `(${term.text})`).join(' AND ') || 'true',
  values: terms.flatMap((term) => term.values),
});

/** `WHERE … ORDER BY … LIMIT … OFFSET …` */
export function findSql<D>(filter: Readonly<Record<string, unknown>>, options: FindOptions<D>): Sql {
  const order = orderOf(options);
  const where =
    options.after === undefined ? whereSql(filter) : and([whereSql(filter), ...afterSql(order, options.after)]);
  const sorted = order.map(([field, direction]) => `${column(field)} ${direction}`).join(', ');
  return {
    text: `WHERE ${where.text} ORDER BY ${sorted} LIMIT ? OFFSET ?`,
    values: [...where.values, options.limit ?? -1, options.skip ?? 0],
  };
}

/** Beyond the last document seen: later in the first key, or level in it and later in the second, and so on. */
function afterSql(order: ReturnType<typeof orderOf>, after: readonly Scalar[]): Sql[] {
  const later = (place: number): string => `${column(order[place]![0])} ${order[place]![1] === 'asc' ? '>' : '<'}`;
  const steps = order.map((_, place): Sql => ({
    text: [...order.slice(0, place).map(([field]) => `${column(field)} = ?`), `${later(place)} ?`].join(' AND '),
    values: after.slice(0, place + 1).map(bound),
  }));
  // Implied by the steps; it tells the planner where in the index to begin.
  const begin: Sql = { text: `${later(0)}= ?`, values: [bound(after[0]!)] };
  return [
    begin,
    { text: steps.map((step) => `(${step.text})`).join(' OR '), values: steps.flatMap((step) => step.values) },
  ];
}
