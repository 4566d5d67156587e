import type { SQLInputValue } from 'node:sqlite';
import { checkFilter, completeSort } from '../checks.ts';
import type { FindOptions, Scalar } from '../store.ts';

/** A piece of SQL and the values of its placeholders. Names in it come from declarations or checked filters only. */
export interface Sql {
  text: string;
  values: SQLInputValue[];
}

const RANGES: Record<string, string> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

/** The SQL expression of a field. SQLite uses an index only when the query has the very same expression. */
export const column = (field: string): string => (field === '_id' ? 'id' : `json_extract(doc,'$.${field}')`);

/** json_extract returns 1 and 0 for booleans, so they are compared as numbers. */
const sqlValue = (value: Scalar): SQLInputValue => (typeof value === 'boolean' ? Number(value) : value);

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
    : { text: `${expression} = ?`, values: [sqlValue(value)] };

function compare(expression: string, operator: string, value: unknown): Sql {
  // One statement text for lists of any length keeps the statement cache small.
  if (operator === 'in')
    return { text: `${expression} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(value)] };
  return {
    text: `${expression} ${operator === 'ne' ? 'IS NOT' : RANGES[operator]} ?`,
    values: [sqlValue(value as Scalar)],
  };
}

const and = (terms: readonly Sql[]): Sql => ({
  text: terms.map((term) => `(${term.text})`).join(' AND ') || 'true',
  values: terms.flatMap((term) => term.values),
});

/** `WHERE … ORDER BY … LIMIT … OFFSET …` */
export function findSql<D>(filter: Readonly<Record<string, unknown>>, options: FindOptions<D>): Sql {
  const order = completeSort(options);
  const where =
    options.after === undefined ? whereSql(filter) : and([whereSql(filter), ...afterSql(order, options.after)]);
  const sorted = order.map(([field, direction]) => `${column(field)} ${direction}`).join(', ');
  return {
    text: `WHERE ${where.text} ORDER BY ${sorted} LIMIT ? OFFSET ?`,
    values: [...where.values, options.limit ?? -1, options.skip ?? 0],
  };
}

/** After the last document seen: later in the first sort field, or equal in it and later in the second, and so on. */
function afterSql(order: ReturnType<typeof completeSort>, after: readonly Scalar[]): Sql[] {
  const later = (place: number): string => `${column(order[place]![0])} ${order[place]![1] === 'asc' ? '>' : '<'}`;
  const alternatives = order.map((_, place): Sql => ({
    text: [...order.slice(0, place).map(([field]) => `${column(field)} = ?`), `${later(place)} ?`].join(' AND '),
    values: after.slice(0, place + 1).map(sqlValue),
  }));
  // The alternatives imply this; it lets the query planner begin at the right place of the index.
  const begin: Sql = { text: `${later(0)}= ?`, values: [sqlValue(after[0]!)] };
  return [
    begin,
    {
      text: alternatives.map(({ text }) => `(${text})`).join(' OR '),
      values: alternatives.flatMap(({ values }) => values),
    },
  ];
}
