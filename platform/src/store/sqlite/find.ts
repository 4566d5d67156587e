import type { FindOptions } from '../store.ts';
import { requireFit } from '../reply-limit.ts';
import { completeSort } from '../checks.ts';
import { DOCUMENT, PIECE_BYTES, PIECE_DOCUMENTS, STATEMENT, type Turns } from '../turns.ts';
import { idOfText, idTextSql } from './cells.ts';
import type { Layout } from './layout.ts';
import { isInOrder, mostOf } from './read-cost.ts';
import { bytesSql, hasLargeText, knownFields, makeRowReader, type Row, type RowReader, type Rows } from './rows.ts';
import { narrowPage } from './narrow-page.ts';
import { bind, findSql, shapeOf, type Sql } from './sql.ts';

type Filter = Readonly<Record<string, unknown>>;

/** Who removes documents of a page all the time makes it short, and not endless. */
const ATTEMPTS = 3;
/** How many documents one statement measures, where an index has them in order. */
const MEASURED_DOCUMENTS = 1_000;

/** The statements of the reads with filters and options of one shape. */
interface Query {
  reader: RowReader;
  /** Reads the documents without large texts. */
  small: Sql;
  /** Reads the id and the size of each document. */
  measure: Sql;
  /** Reads the documents. */
  whole: Sql;
}

interface Measured {
  id: string;
  bytes: number;
}

/** Makes the statements of each shape once. */
export function makeFind(rows: Rows) {
  const queries = new Map<string, Query>();

  function queryOf(layout: Layout, filter: Filter, options: FindOptions<never>): Query {
    const order = completeSort(options).join(';');
    const page = `${options.limit !== undefined},${options.after !== undefined},${options.omit?.join() ?? ''}`;
    const shape = `${layout.name} ${shapeOf(filter)} ${order} ${page}`;
    let query = queries.get(shape);
    if (query === undefined) queries.set(shape, (query = makeQuery(layout, filter, options)));
    return query;
  }

  /** Finds the documents, if they are few and have no large texts: most reads are one statement. */
  function readFew(layout: Layout, filter: Filter, options: FindOptions<never>, turns: Turns) {
    const { reader, small } = queryOf(layout, filter, options);
    const { maxBytes = Infinity, skip = 0, limit = Infinity } = options;
    const piece = { ...options, limit: Math.min(limit, PIECE_DOCUMENTS + 1) };
    const values = bind(small.values, filter, piece);

    function documentsOf(found: readonly Row[]): unknown[] | undefined {
      if (found.length > PIECE_DOCUMENTS || found.some(hasLargeText)) return undefined;
      if (found.length * reader.mostBytes > maxBytes) {
        const bytes = found.reduce((sum, row) => sum + reader.bytesOf(row, filter), 0);
        requireFit(bytes, maxBytes);
      }
      return found.map((row) => reader.documentOf(row, filter));
    }
    return turns.inTurn(
      () => documentsOf(rows(small.text, values)),
      mostOf(layout, filter, piece),
      (documents) => STATEMENT + skip + DOCUMENT * (documents?.length ?? PIECE_DOCUMENTS),
    );
  }

  async function measure(
    layout: Layout,
    filter: Filter,
    options: FindOptions<never>,
    turns: Turns,
  ): Promise<Measured[]> {
    const isStepwise = completeSort(options).length === 1 && isInOrder(layout, filter, ['_id']);
    const measured: Measured[] = [];
    for (let page = options; ;) {
      const left = (options.limit ?? Infinity) - measured.length;
      const piece = isStepwise ? Math.min(left, MEASURED_DOCUMENTS) : left;
      const { text, values } = queryOf(layout, filter, page).measure;
      const bound = bind(values, filter, { ...page, limit: piece === Infinity ? -1 : piece });
      const found = await turns.inTurn(() => rows(text, bound));
      for (const [id, bytes] of found) measured.push({ id: idOfText(id as string), bytes: bytes as number });
      if (found.length < piece || found.length === left) return measured;
      page = { ...options, skip: 0, after: [measured.at(-1)!.id] };
    }
  }

  /** The documents of these ids that still match the filter, in this order. */
  function readListed(layout: Layout, filter: Filter, ids: readonly string[], { omit }: FindOptions<never>): unknown[] {
    const listed = { ...filter, _id: { in: ids } };
    const { reader, whole } = queryOf(layout, listed, { ...(omit && { omit }) });
    const documents = rows(whole.text, bind(whole.values, listed)).map((row) => reader.documentOf(row, listed));
    const byId = new Map(documents.map((document) => [document['_id'], document]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /**
   * Finds the documents. If they are many, or some have large texts, measures all, and only then reads them piece by
   * piece, each in turn. One that is removed, or changed so that the filter does not match, before its turn is left
   * out.
   * @throws ServiceError REPLY_TOO_LARGE
   */
  async function read(layout: Layout, filter: Filter, options: FindOptions<never>, turns: Turns): Promise<unknown[]> {
    const few = await readFew(layout, filter, options, turns);
    if (few) return few;
    const measured = await measure(layout, filter, options, turns);
    requireFit(
      measured.reduce((sum, { bytes }) => sum + bytes, 0),
      options.maxBytes,
    );
    const documents: unknown[] = [];
    for (const ids of piecesOf(measured))
      documents.push(...(await turns.inTurn(() => readListed(layout, filter, ids, options))));
    return documents;
  }

  /**
   * See `read`. A page may be short of documents that were removed while it was read. @throws ServiceError
   * REPLY_TOO_LARGE
   */
  return async (layout: Layout, given: Filter, options: FindOptions<never>, turns: Turns): Promise<unknown[]> => {
    const filter = options.limit === undefined ? withoutListsOfOne(given) : given;
    for (let attempt = 1; ; attempt++) {
      const page = await narrowPage(rows, layout, filter, options, turns);
      const found = page === undefined ? [] : await read(layout, page.filter, page.options, turns);
      if (page?.isFull !== true || found.length === options.limit || attempt === ATTEMPTS) return found;
    }
  };
}

function* piecesOf(measured: readonly Measured[]): Generator<string[]> {
  let [ids, sum]: [string[], number] = [[], 0];
  for (const { id, bytes } of measured) {
    ids.push(id);
    sum += bytes;
    if (ids.length < PIECE_DOCUMENTS && sum < PIECE_BYTES) continue;
    yield ids;
    [ids, sum] = [[], 0];
  }
  if (ids.length > 0) yield ids;
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
  return {
    reader,
    small: { text: `SELECT ${reader.smallSql} ${text}`, values },
    measure: { text: `SELECT ${idTextSql('"_id"')}, ${bytesSql(layout)} ${text}`, values },
    whole: { text: `SELECT ${reader.wholeSql} ${text}`, values },
  };
}
