import type { FindOptions } from '../store.ts';
import { requireFit, type InTurn } from '../reply-limit.ts';
import { findSql, whereSql, type Sql } from './sql.ts';

type Row = Record<string, unknown>;
/** Runs a SELECT on a table. */
export type Rows = (table: string, select: string, sql: Sql) => Row[];

/** Documents up to this size come with the first query; SQLite keeps larger ones apart, and reading them takes long. */
const SMALL_BYTES = 4_096;
/** octet_length does not read the document. */
const SELECT = `id, octet_length(doc) AS bytes, CASE WHEN octet_length(doc) <= ${SMALL_BYTES} THEN doc END AS doc`;

/**
 * Finds the documents, measures them, and only then reads the large ones, each in turn. One that is removed or changed
 * so that the filter does not match, before its turn, is left out.
 * @throws ServiceError REPLY_TOO_LARGE
 */
export async function findDocuments(
  rows: Rows,
  table: string,
  filter: Readonly<Record<string, unknown>>,
  options: FindOptions<never>,
  inTurn: InTurn,
): Promise<unknown[]> {
  const found = rows(table, SELECT, findSql(filter, options));
  requireFit(
    found.reduce((sum, { bytes }) => sum + (bytes as number), 0),
    options.maxBytes,
  );
  if (found.every(({ doc }) => doc !== null)) return found.map(({ doc }) => JSON.parse(doc as string));

  const where = whereSql(filter);
  const text = `WHERE id = ? AND ${where.text}`;
  const read = (id: string): Row[] => rows(table, 'doc', { text, values: [id, ...where.values] });
  const documents: unknown[] = [];
  for (const { id, doc } of found) {
    if (doc !== null) documents.push(JSON.parse(doc as string));
    else
      await inTurn(() => {
        for (const row of read(id as string)) documents.push(JSON.parse(row.doc as string));
      });
  }
  return documents;
}
