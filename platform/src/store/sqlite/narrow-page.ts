import { completeSort } from '../checks.ts';
import type { FindOptions } from '../store.ts';
import { ENTRIES_A_TURN, LOOK, STATEMENT, type Turns } from '../turns.ts';
import { cellOf, idOfText, uuidTextSql, valueOfCell } from './cells.ts';
import { indexedBy, listBeforeOrder } from './choose-index.ts';
import { isInOrder } from './read-cost.ts';
import type { Rows } from './rows.ts';
import type { Layout } from './layout.ts';
import { bind, findSql, whereSql } from './sql.ts';

type Fields = Readonly<Record<string, unknown>>;
export interface Page {
  filter: Fields;
  options: FindOptions<never>;
  /** The page had all its documents. When one of them is removed meanwhile, it is too short: read it again. */
  isFull: boolean;
}

/** Pages that begin later are found by passing what is before them, others by reading it. */
const SKIPPED_BY_READING = 200;

/**
 * Finds out in turns where a page begins that has much before it, or which ids it has when it is one of many listed
 * values: `findSql` reads the first `skip + limit` documents of each value, and throws most of them away. Undefined
 * when the page is past the end.
 */
export async function narrowPage(
  rows: Rows,
  layout: Layout,
  filter: Fields,
  options: FindOptions<never>,
  turns: Turns,
): Promise<Page | undefined> {
  const page = { filter, options, isFull: false };
  const { limit, skip = 0 } = options;
  const sort = completeSort(options);
  if (limit === undefined || sort.length > 1 || layout.kindOf('_id') !== 'id') return page;
  const descending = sort[0]![1] === 'desc';
  const field = listBeforeOrder(layout, filter, sort);
  if (field === undefined) {
    if (skip <= ENTRIES_A_TURN / 2 || !isInOrder(layout, filter, ['_id'])) return page;
    const after = await idAfterSkip(
      rows,
      layout,
      filter,
      { after: options.after?.[0] as string, skip, descending },
      turns,
    );
    return after === undefined ? undefined : { ...page, options: { ...options, skip: 0, after: [after] } };
  }
  const values = [...new Set((filter[field] as { in: readonly string[] }).in)];
  const isSimple = Object.keys(filter).length === 2 && 'organizationId' in filter;
  if (!isSimple || values.length * (skip + limit + LOOK) <= ENTRIES_A_TURN) return page;

  let from = { ...options, skip: 0, limit: skip + limit };
  if (skip > SKIPPED_BY_READING) {
    const lists = listsOf(rows, layout, filter, field, descending);
    const after = await inTurns(turns, idAtRank(lists, values, options.after?.[0] as string | undefined, skip));
    if (after === undefined) return undefined;
    from = { ...from, limit, after: [after] };
  }
  const first = await firstOfLists(rows, layout, { filter, field, values, options: from }, turns);
  const found = first.slice(from.limit - limit);
  if (found.length === 0) return undefined;
  const listed = {
    [field]: { in: [...new Set(found.map(({ value }) => value))] },
    _id: { in: found.map(({ id }) => id) },
  };
  // The limit would have each of the values looked up.
  const { limit: _, skip: _skip, after: _after, ...others } = options;
  return { filter: { ...filter, ...listed }, options: others, isFull: found.length === limit };
}

/** The id before a page, by steps through the index in which the documents are. Undefined past the end. */
async function idAfterSkip(
  rows: Rows,
  layout: Layout,
  filter: Fields,
  { after, skip, descending }: { after: string | undefined; skip: number; descending: boolean },
  turns: Turns,
): Promise<string | undefined> {
  const { text, values } = whereSql(layout, filter);
  const select = (later: string): string =>
    `SELECT ${uuidTextSql('"_id"')} FROM "${layout.name}" ${indexedBy(layout, filter, ['_id'])} WHERE ${text} ${later} ` +
    `ORDER BY "_id" ${descending ? 'DESC' : 'ASC'} LIMIT 1 OFFSET ?`;
  const [first, later] = [select(''), select(`AND "_id" ${descending ? '<' : '>'} ?`)];
  let [from, left] = [after, skip];
  while (left > 0) {
    const step = Math.min(left, ENTRIES_A_TURN);
    const bound = [...bind(values, filter), ...(from === undefined ? [] : [cellOf(from, true)]), step - 1];
    const sql = from === undefined ? first : later;
    const [row] = await turns.inTurn(() => rows(sql, bound));
    if (row === undefined) return undefined;
    from = idOfText(row[0] as string);
    left -= step;
  }
  return from;
}

interface Listed {
  id: string;
  value: unknown;
}

/**
 * The first ids of all lists, in their order: those of some lists at a time, and no more than the page can have. What
 * was found already bounds what is read of further lists.
 */
async function firstOfLists(
  rows: Rows,
  layout: Layout,
  { filter, field, values, options }: { filter: Fields; field: string; values: string[]; options: FindOptions<never> },
  turns: Turns,
): Promise<Listed[]> {
  const limit = options.limit!;
  const descending = completeSort(options)[0]![1] === 'desc';
  const isBefore = (id: string, other: string): boolean => (descending ? id > other : id < other);
  const valuesATurn = Math.max(1, Math.floor(ENTRIES_A_TURN / (limit + LOOK)));
  let first: Listed[] = [];
  for (let from = 0; from < values.length; from += valuesATurn) {
    const last = first.length === limit ? first.at(-1)!.id : undefined;
    const some = {
      ...filter,
      [field]: { in: values.slice(from, from + valuesATurn) },
      ...(last !== undefined && { _id: descending ? { gt: last } : { lt: last } }),
    };
    first = await turns.inTurn(() => {
      const sql = findSql(layout, some, options);
      const found = rows(`SELECT ${uuidTextSql('"_id"')}, "${field}" ${sql.text}`, bind(sql.values, some, options));
      const listed = found.map(([id, value]) => ({ id: idOfText(id as string), value: valueOfCell(value!) }));
      return [...first, ...listed].sort((one, other) => (isBefore(one.id, other.id) ? -1 : 1)).slice(0, limit);
    });
  }
  return first;
}

/** Lists of ids, one for each value of a field, in the same order. */
export interface Lists {
  isBefore(id: string, other: string): boolean;
  /** The id `step` places after `from`, or after the beginning; undefined when the list has fewer. */
  idAfter(value: string, from: string | undefined, step: number): string | undefined;
}

function listsOf(rows: Rows, layout: Layout, filter: Fields, field: string, descending: boolean): Lists {
  const index = indexedBy(layout, { ...filter, [field]: '' }, ['_id']);
  const select = (from: string): string =>
    `SELECT ${uuidTextSql('"_id"')} FROM "${layout.name}" ${index} ` +
    `WHERE "organizationId" = ? AND "${field}" = ? ${from} ORDER BY "_id" ${descending ? 'DESC' : 'ASC'} LIMIT 1 OFFSET ?`;
  const [first, later] = [select(''), select(`AND "_id" ${descending ? '<' : '>'} ?`)];
  const organization = cellOf(filter['organizationId'] as string, layout.isId('organizationId'));
  return {
    isBefore: (id, other) => (descending ? id > other : id < other),
    idAfter(value, from, step) {
      const list = [organization, cellOf(value, layout.isId(field))];
      const [row] =
        from === undefined ? rows(first, [...list, step - 1]) : rows(later, [...list, cellOf(from, true), step - 1]);
      return row && idOfText(row[0] as string);
    },
  };
}

/**
 * The id at a place, counted from 1 after `from`, of the lists merged into one; undefined when they have fewer ids.
 * Steps over many ids of a list at once: when each list is probed `step` ids further, the first of these probes has at
 * most `step - 1` ids of each other list before it. Half of what is left is always passed by steps of one length, so
 * the statements are about two for each list and length, whatever the lengths of the lists.
 * After each statement it yields how many entries of the index that cost.
 */
export function* idAtRank(
  lists: Lists,
  values: readonly string[],
  from: string | undefined,
  rank: number,
): Generator<number, string | undefined> {
  const passed = values.map(() => from);
  let left = rank;
  while (left > 0) {
    const step = Math.max(1, Math.floor(left / (2 * values.length)));
    const probes: { place: number; id: string }[] = []; // the first one last
    const probe = (place: number): number => {
      const id = lists.idAfter(values[place]!, passed[place], step);
      if (id !== undefined) probes.splice(placeFor(probes, id, lists), 0, { place, id });
      return step + STATEMENT;
    };
    for (const place of values.keys()) yield probe(place);
    while (left > values.length * (step - 1)) {
      const next = probes.pop();
      if (next === undefined) return undefined;
      passed[next.place] = next.id;
      left -= step;
      yield probe(next.place);
    }
  }
  return passed.reduce((last, id) =>
    last === undefined || (id !== undefined && lists.isBefore(last, id)) ? id : last,
  );
}

/** Where the id belongs among probes that are sorted from the last to the first. */
function placeFor(probes: readonly { id: string }[], id: string, { isBefore }: Lists): number {
  let [low, high] = [0, probes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(id, probes[middle]!.id)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Does the work piece by piece, each in the organization's turn. */
async function inTurns<T>(turns: Turns, work: Generator<number, T>): Promise<T> {
  for (;;) {
    const result = await turns.inTurn(() => {
      for (let entries = 0; ;) {
        const next = work.next();
        if (next.done === true) return next;
        entries += next.value;
        if (entries >= ENTRIES_A_TURN) return undefined;
      }
    });
    if (result) return result.value;
  }
}
