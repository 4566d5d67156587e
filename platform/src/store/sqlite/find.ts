import type { FindOptions } from '../store.ts';
import { requireFit, type InTurn } from '../reply-limit.ts';
import { findSql, whereSql, type Sql } from './sql.ts';

type Row = Record<string, unknown>;
/** Runs a SELECT on a table. */
export type Rows = (table: string, select: string, sql: Sql) => Row[];

/** Documents up to this size come with the first query; SQLite keeps larger ones apart, and reading them takes long. */
const SMALL_BYTES = 4_096;
/** octet_length does not read the document. */
const SMALL = `CASE WHEN octet_length(doc) <= ${SMALL_BYTES} THEN doc END AS doc`;

/**
 * Finds the documents. If some are large, measures all, and only then reads the large ones, each in turn. One that is
 * removed, or changed so that the filter does not match, before its turn is left out.
 * @throws ServiceError REPLY_TOO_LARGE
 */
export async function findDocuments(
  rows: Rows,
  table: string,
  filter: Readonly<Record<string, unknown>>,
  options: FindOptions<never>,
  inTurn: InTurn,
): Promise<unknown[]> {
  const { maxBytes = Infinity } = options;
  const query = findSql(filter, options);
  const found = rows(table, SMALL, query);
  if (found.every(({ doc }) => doc !== null)) {
    if (found.length * SMALL_BYTES > maxBytes) requireFit(sumOf(found, bytesOfDocument), maxBytes);
    return found.map(({ doc }) => JSON.parse(doc as string));
  }

  // Nothing is written between the two queries, because both are synchronous.
  const measured = rows(table, 'id, octet_length(doc) AS bytes', query);
  requireFit(
    sumOf(measured, ({ bytes }) => bytes as number),
    maxBytes,
  );
  const where = whereSql(filter);
  const text = `WHERE id = ? AND ${where.text}`;
  const documents: unknown[] = [];
  for (const [place, { id }] of measured.entries()) {
    const small = found[place]!.doc;
    if (small !== null) documents.push(JSON.parse(small as string));
    else
      await inTurn(() => {
        const [row] = rows(table, 'doc', { text, values: [id as string, ...where.values] });
        if (row) documents.push(JSON.parse(row.doc as string));
      });
  }
  return documents;
}

const bytesOfDocument = ({ doc }: Row): number => Buffer.byteLength(doc as string);
const sumOf = (rows: readonly Row[], bytesOf: (row: Row) => number): number =>
  rows.reduce((sum, row) => sum + bytesOf(row), 0);
