import { completeSort } from '../checks.ts';
import type { FindOptions } from '../store.ts';
import { requireFit, type InTurn } from '../reply-limit.ts';
import { cellOf, idOfText, idTextSql } from './cells.ts';
import type { Layout } from './layout.ts';
import { bytesSql, hasLargeText, knownFields, makeRowReader, type RowReader, type Rows } from './rows.ts';
import { narrowPage } from './narrow-page.ts';
import { bind, findSql, fromSql, shapeOf, whereSql, type Sql } from './sql.ts';

type Filter = Readonly<Record<string, unknown>>;

/** Who removes documents of a page all the time makes it short, and not endless. */
const ATTEMPTS = 3;

/** The statements of the reads with filters and options of one shape. */
interface Query {
  reader: RowReader;
  /** Reads the documents without large texts. */
  small: Sql;
  /** Reads the id and the size of each document. */
  measure: Sql;
  /** Reads one document of this id, if it still matches the filter. */
  whole: Sql;
}

/** Makes the statements of each shape once. */
export function makeReads(rows: Rows) {
  const queries = new Map<string, Query>();
  const aggregates = new Map<string, Sql>();

  function queryOf(layout: Layout, filter: Filter, options: FindOptions<never>): Query {
    const order = completeSort(options).join(';');
    const page = `${options.limit !== undefined},${options.after !== undefined},${options.omit?.join() ?? ''}`;
    const shape = `${layout.name} ${shapeOf(filter)} ${order} ${page}`;
    let query = queries.get(shape);
    if (query === undefined) queries.set(shape, (query = makeQuery(layout, filter, options)));
    return query;
  }

  function aggregate(expression: string, layout: Layout, filter: Filter): number {
    const shape = `${expression} ${layout.name} ${shapeOf(filter)}`;
    let sql = aggregates.get(shape);
    if (sql === undefined) {
      const { text, values } = fromSql(layout, filter);
      aggregates.set(shape, (sql = { text: `SELECT ${expression} ${text}`, values }));
    }
    return rows(sql.text, bind(sql.values, filter))[0]![0] as number;
  }

  /**
   * Finds the documents. If some have large texts, measures all, and only then reads the large ones, each in turn.
   * One that is removed, or changed so that the filter does not match, before its turn is left out.
   * @throws ServiceError REPLY_TOO_LARGE
   */
  async function read(layout: Layout, filter: Filter, options: FindOptions<never>, inTurn: InTurn): Promise<unknown[]> {
    const { reader, small, measure, whole } = queryOf(layout, filter, options);
    const { maxBytes = Infinity } = options;
    const found = rows(small.text, bind(small.values, filter, options));
    if (!found.some(hasLargeText)) {
      if (found.length * reader.mostBytes > maxBytes) {
        const bytes = found.reduce((sum, row) => sum + reader.bytesOf(row, filter), 0);
        requireFit(bytes, maxBytes);
      }
      return found.map((row) => reader.documentOf(row, filter));
    }

    // Nothing is written between the two queries, because both are synchronous.
    const measured = rows(measure.text, bind(measure.values, filter, options));
    const bytes = measured.reduce((sum, row) => sum + (row[1] as number), 0);
    requireFit(bytes, maxBytes);
    const conditions = bind(whole.values, filter);
    const documents: unknown[] = [];
    for (const [place, [id]] of measured.entries()) {
      const row = found[place]!;
      if (!hasLargeText(row)) documents.push(reader.documentOf(row, filter));
      else
        await inTurn(() => {
          const [found] = rows(whole.text, [cellOf(idOfText(id as string), layout.isId('_id')), ...conditions]);
          if (found) documents.push(reader.documentOf(found, filter));
        });
    }
    return documents;
  }

  return {
    count: (layout: Layout, filter: Filter, limit?: number): number =>
      Math.min(aggregate('count(*)', layout, filter), limit ?? Infinity),
    sum: (layout: Layout, filter: Filter, field: string): number =>
      aggregate(`coalesce(sum("${field}"), 0)`, layout, filter),
    /**
     * See `read`. A page may be short of documents that were removed while it was read. @throws ServiceError
     * REPLY_TOO_LARGE
     */
    async find(layout: Layout, given: Filter, options: FindOptions<never>, inTurn: InTurn): Promise<unknown[]> {
      const filter = options.limit === undefined ? withoutListsOfOne(given) : given;
      for (let attempt = 1; ; attempt++) {
        const page = await narrowPage(rows, layout, filter, options, inTurn);
        const found = page === undefined ? [] : await read(layout, page.filter, page.options, inTurn);
        if (page?.endsEarly !== true || found.length === options.limit || attempt === ATTEMPTS) return found;
      }
    },
  };
}

/**
 * Asks for the only text of a list instead: SQLite makes a table of each list, a third of the time of a look-up. Pages
 * keep their lists, by which `narrowPage` and `findSql` bound what they read.
 */
function withoutListsOfOne(filter: Filter): Filter {
  let same: Record<string, unknown> | undefined;
  for (const field in filter) {
    const text = onlyTextOf(filter[field]);
    if (text !== undefined) (same ??= { ...filter })[field] = text;
  }
  return same ?? filter;
}

/** Undefined for what is no list of one text, which is left to the check of the filter. */
function onlyTextOf(condition: unknown): string | undefined {
  if (condition === null || typeof condition !== 'object' || Object.keys(condition).length !== 1) return undefined;
  const { in: list } = condition as { in?: unknown };
  return Array.isArray(list) && list.length === 1 && typeof list[0] === 'string' ? list[0] : undefined;
}

function makeQuery(layout: Layout, filter: Filter, options: FindOptions<never>): Query {
  const reader = makeRowReader(layout, knownFields(layout, filter), options.omit);
  const { text, values } = findSql(layout, filter, options);
  const where = whereSql(layout, filter);
  return {
    reader,
    small: { text: `SELECT ${reader.smallSql} ${text}`, values },
    measure: { text: `SELECT ${idTextSql('"_id"')}, ${bytesSql(layout)} ${text}`, values },
    whole: {
      text: `SELECT ${reader.wholeSql} FROM "${layout.name}" WHERE "_id" = ? AND ${where.text}`,
      values: where.values,
    },
  };
}
