import type { SQLInputValue } from 'node:sqlite';
import { checkFilter, completeSort } from '../checks.ts';
import type { FindOptions, Scalar } from '../store.ts';
import {
  fewBeforeOrder,
  goesByElements,
  indexedBy,
  indexName,
  isFixed,
  isList,
  listBeforeOrder,
} from './choose-index.ts';
import type { EngineIndex } from '../indexes.ts';
import { elementsTable } from './elements.ts';
import { cellOf, listCell, LISTED_CELL } from './cells.ts';
import { REST, type Layout } from './layout.ts';
import { LIMIT_VALUE } from './statements.ts';

/** The value of a placeholder for a filter and options of the shape that the SQL was made for. */
type Bind = (filter: Fields, options: FindOptions<never>) => SQLInputValue;
/** A piece of SQL and the values of its placeholders. Names in it come from declarations or checked filters only. */
export interface Sql {
  text: string;
  values: Bind[];
}
type Fields = Readonly<Record<string, unknown>>;
type Order = ReturnType<typeof completeSort>;
type ListValues = readonly (string | number | boolean)[];

/** Filters of one shape have the same SQL: the same fields and operators. @throws TypeError see checkFilter */
export function shapeOf(filter: Fields): string {
  checkFilter(filter);
  let shape = '';
  for (const field in filter) {
    const condition = filter[field];
    shape += `${field}:${condition === null ? 'null' : typeof condition}`;
    if (condition !== null && typeof condition === 'object') for (const operator in condition) shape += `&${operator}`;
    shape += ';';
  }
  return shape;
}

export const bind = (values: readonly Bind[], filter: Fields, options: FindOptions<never> = {}): SQLInputValue[] =>
  values.map((value) => value(filter, options));

const RANGES: Record<string, string> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

/** The SQL expression of a field, and its value for a comparison with it. */
const expression = (layout: Layout, field: string): string =>
  layout.has(field) ? `"${field}"` : `json_extract("${REST}", '$.${field}')`;
function operand(layout: Layout, field: string, value: unknown): SQLInputValue {
  if (layout.has(field)) return cellOf(value as Scalar, layout.isId(field));
  // json_extract returns 1 and 0 for booleans.
  return typeof value === 'boolean' ? Number(value) : (value as SQLInputValue);
}

export function whereSql(layout: Layout, filter: Fields): Sql {
  const byId = isFixed(filter, '_id') || isList(filter, '_id') || goesByElements(layout, filter);
  const terms = Object.entries(filter).flatMap(([field, condition]): Sql[] => {
    // A plus keeps SQLite from reading all documents of the organization to find those with these ids.
    const left = `${byId && field === 'organizationId' ? '+' : ''}${expression(layout, field)}`;
    if (condition === null) return [{ text: `${left} IS NULL`, values: [] }];
    if (typeof condition === 'object')
      return Object.keys(condition).map((operator) =>
        compare(layout, field, left, operator, isFixed(filter, 'organizationId')),
      );
    return [{ text: `${left} = ?`, values: [(given) => operand(layout, field, given[field])] }];
  });
  return and(terms);
}

function compare(layout: Layout, field: string, left: string, operator: string, scoped: boolean): Sql {
  const valueIn = (given: Fields): unknown => (given[field] as Fields)[operator];
  if (operator === 'containsAny' && scoped && layout.elements.includes(field))
    return {
      text:
        `"_id" IN (SELECT "_id" FROM "${elementsTable(layout, field)}" WHERE "organizationId" = ? ` +
        'AND element IN (SELECT value FROM json_each(?)))',
      values: [
        (given) => operand(layout, 'organizationId', given['organizationId']),
        (given) => JSON.stringify(valueIn(given)),
      ],
    };
  if (operator === 'containsAny')
    return {
      text:
        `EXISTS (SELECT 1 FROM json_each("${REST}", '$.${field}') AS element ` +
        'WHERE element.value IN (SELECT value FROM json_each(?)))',
      values: [(given) => JSON.stringify(valueIn(given))],
    };
  if (operator !== 'in')
    return {
      text: `${left} ${operator === 'ne' ? 'IS NOT' : RANGES[operator]} ?`,
      values: [(given) => operand(layout, field, valueIn(given))],
    };
  // One statement text for lists of any length keeps the statement cache small.
  return layout.has(field)
    ? {
        text: `${left} IN (SELECT ${LISTED_CELL} FROM json_each(?) AS listed)`,
        values: [(given) => listCell(valueIn(given) as ListValues, layout.isId(field))],
      }
    : {
        text: `${left} IN (SELECT value FROM json_each(?))`,
        values: [(given) => JSON.stringify(valueIn(given))],
      };
}

const and = (terms: readonly Sql[]): Sql => ({
  text: terms.map((term) => `(${term.text})`).join(' AND ') || 'true',
  values: terms.flatMap((term) => term.values),
});

/** `FROM … WHERE …`, in no order. */
export function fromSql(layout: Layout, filter: Fields): Sql {
  const { text, values } = whereSql(layout, filter);
  return { text: `FROM "${layout.name}" ${indexedBy(layout, filter, [])} WHERE ${text}`, values };
}

/** `FROM … WHERE … ORDER BY … LIMIT … OFFSET …` */
export function findSql(layout: Layout, filter: Fields, options: FindOptions<never>): Sql {
  const complete = completeSort(options);
  const later = options.after === undefined ? [] : afterSql(layout, complete);
  const order = withoutTies(layout, filter, complete);
  const fields = order.map(([field]) => field);
  const sorts = order.map(([field, direction]) => `${expression(layout, field)} ${direction}`);
  const sorted = sorts.length === 0 ? '' : `ORDER BY ${sorts.join(', ')}`;
  const each = options.limit === undefined ? undefined : listedOf(layout, filter, order);
  if (each === undefined) {
    const where = and([whereSql(layout, filter), ...later]);
    return {
      text:
        `FROM "${layout.name}" ${indexedBy(layout, filter, fields)} WHERE ${where.text} ` +
        `${sorted} LIMIT ${LIMIT_VALUE} OFFSET ?`,
      values: [...where.values, limitOf, skipOf],
    };
  }
  // Takes the first documents of each value by the index, and then the first of these: documents that the page does not
  // contain are not read, however many there are.
  const { [each.field]: _, ...others } = filter;
  const where = and([whereSql(layout, others), ...later]);
  const index = indexedBy(layout, { ...others, [each.field]: '' }, fields);
  const first =
    `SELECT rowid FROM "${layout.name}" ${index} WHERE "${each.field}" = ${each.cell} AND ${where.text} ` +
    `${sorted} LIMIT ${LIMIT_VALUE}`;
  // json_each has columns named key, type, value and so on.
  const sortedPage = sorted.replaceAll(/"\w+"/g, 'page.$&');
  const page =
    `SELECT page.rowid FROM ${each.text} AS listed CROSS JOIN "${layout.name}" AS page ON page.rowid IN (${first}) ` +
    `${sortedPage} LIMIT ${LIMIT_VALUE} OFFSET ?`;
  return {
    text: `FROM "${layout.name}" WHERE rowid IN (${page}) ${sorted}`,
    values: [...each.values, ...where.values, (_given, { limit, skip = 0 }) => limit! + skip, limitOf, skipOf],
  };
}

/** The values of a field, a page of each of which is read: the table `listed`, and a value in it. */
interface Listed extends Sql {
  field: string;
  cell: string;
}

function listedOf(layout: Layout, filter: Fields, order: Order): Listed | undefined {
  const list = listBeforeOrder(layout, filter, order);
  if (list === undefined) {
    const few = fewBeforeOrder(layout, filter, order);
    return few && presentValues(layout, filter, few);
  }
  const cells: Bind = (given) => listCell([...new Set((given[list] as { in: ListValues }).in)], layout.isId(list));
  return { field: list, text: 'json_each(?)', cell: LISTED_CELL, values: [cells] };
}

/** The values that the last field of an index has, each found by one look into the index, after the one before. */
function presentValues(layout: Layout, filter: Fields, index: EngineIndex): Listed {
  const field = index.fields.at(-1)!;
  const fixed = index.columns.filter((name) => isFixed(filter, name));
  const { text, values } = whereSql(layout, Object.fromEntries(fixed.map((name) => [name, filter[name]])));
  const next = (which: string): string =>
    `(SELECT "${field}" FROM "${layout.name}" INDEXED BY "${indexName(index)}" WHERE ${text} AND "${field}" ${which} ` +
    `ORDER BY "${field}" LIMIT 1)`;
  return {
    field,
    text:
      `(WITH RECURSIVE present(value) AS (SELECT ${next('IS NOT NULL')} UNION ALL ` +
      `SELECT ${next('> present.value')} FROM present WHERE value IS NOT NULL) ` +
      'SELECT value FROM present WHERE value IS NOT NULL)',
    cell: 'listed.value',
    values: [...values, ...values],
  };
}

const limitOf: Bind = (_filter, { limit }) => limit ?? -1;
const skipOf: Bind = (_filter, { skip }) => skip ?? 0;

/** The order without the fields after those that no two documents share: SQLite would sort by them. */
function withoutTies(layout: Layout, filter: Fields, order: Order): Order {
  const keys = [['_id'], ...layout.indexes.filter(({ unique }) => unique).map(({ columns }) => columns)];
  const isDecided = (count: number): boolean => {
    const known = new Set(order.slice(0, count).map(([field]) => field));
    return keys.some((key) => key.every((field) => known.has(field) || isFixed(filter, field)));
  };
  return order.slice(0, [...order.keys()].find(isDecided));
}

/** After the last document seen: later in the first sort field, or equal in it and later in the second, and so on. */
function afterSql(layout: Layout, order: Order): Sql[] {
  const later = (place: number): string =>
    `${expression(layout, order[place]![0])} ${order[place]![1] === 'asc' ? '>' : '<'}`;
  const values = order.map(
    ([field], place): Bind =>
      (_filter, { after }) =>
        operand(layout, field, after![place]),
  );
  const alternatives = order.map((_, place): Sql => ({
    text: [...order.slice(0, place).map(([field]) => `${expression(layout, field)} = ?`), `${later(place)} ?`].join(
      ' AND ',
    ),
    values: values.slice(0, place + 1),
  }));
  if (alternatives.length === 1) return alternatives;
  // The alternatives imply this; it lets the query planner begin at the right place of the index.
  const begin: Sql = { text: `${later(0)}= ?`, values: [values[0]!] };
  return [
    begin,
    {
      text: alternatives.map(({ text }) => `(${text})`).join(' OR '),
      values: alternatives.flatMap(({ values: each }) => each),
    },
  ];
}
