import { completeSort } from '../checks.ts';
import type { FindOptions } from '../store.ts';
import type { InTurn } from '../reply-limit.ts';
import { cellOf, idOfText, uuidTextSql } from './cells.ts';
import { indexedBy, listBeforeOrder } from './choose-index.ts';
import type { Rows } from './rows.ts';
import type { Layout } from './layout.ts';

type Fields = Readonly<Record<string, unknown>>;
export interface Page {
  filter: Fields;
  options: FindOptions<never>;
  /** A document that is removed between the bounds leaves the page too short: read it again. */
  endsEarly: boolean;
}

/** How many entries of an index one turn reads: some milliseconds. */
const ENTRIES_A_TURN = 10_000;
/** What a statement costs beside the entries that it reads, counted in entries. */
const STATEMENT_ENTRIES = 100;

/**
 * Bounds a page of documents by id. `findSql` reads the first `skip + limit` documents of each listed value, and throws
 * most of them away; where these are too many, this finds out in turns which id the page begins after, and where it
 * ends. Undefined when the page is past the end.
 */
export async function narrowPage(
  rows: Rows,
  layout: Layout,
  filter: Fields,
  options: FindOptions<never>,
  inTurn: InTurn,
): Promise<Page | undefined> {
  const page = { filter, options, endsEarly: false };
  const { limit, skip = 0 } = options;
  const sort = completeSort(options);
  const field = limit === undefined || sort.length > 1 ? undefined : listBeforeOrder(layout, filter, sort);
  const isSimple = Object.keys(filter).length === 2 && 'organizationId' in filter && layout.kindOf('_id') === 'id';
  if (field === undefined || !isSimple) return page;
  const values = [...new Set((filter[field] as { in: readonly string[] }).in)];
  if (values.length * (skip + limit!) <= ENTRIES_A_TURN) return page;

  const descending = sort[0]![1] === 'desc';
  const lists = listsOf(rows, layout, filter, field, descending);
  let after = options.after?.[0] as string | undefined;
  if (skip > 0) {
    after = await inTurns(inTurn, idAtRank(lists, values, after, skip));
    if (after === undefined) return undefined;
  }
  const end =
    values.length * limit! > ENTRIES_A_TURN ? await inTurns(inTurn, idAtRank(lists, values, after, limit!)) : undefined;
  return {
    filter: end === undefined ? filter : { ...filter, _id: descending ? { gte: end } : { lte: end } },
    options: { ...options, skip: 0, ...(after !== undefined && { after: [after] }) },
    endsEarly: end !== undefined,
  };
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
      return step + STATEMENT_ENTRIES;
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
async function inTurns<T>(inTurn: InTurn, work: Generator<number, T>): Promise<T> {
  for (;;) {
    const result = await inTurn(() => {
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
