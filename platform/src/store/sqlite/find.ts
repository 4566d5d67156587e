import type { SQLInputValue } from 'node:sqlite';
import type { FindOptions } from '../store.ts';
import { requireFit, type InTurn } from '../reply-limit.ts';
import { cellOf, idOfText, idTextSql } from './cells.ts';
import type { Layout } from './layout.ts';
import { bytesSql, hasLargeText, SMALL_BYTES, type Row, type RowReader } from './rows.ts';
import { findSql, whereSql } from './sql.ts';

type Filter = Readonly<Record<string, unknown>>;
/** Runs a SELECT. */
export type Rows = (sql: string, values: readonly SQLInputValue[]) => Row[];

/**
 * Finds the documents. If some have large texts, measures all, and only then reads the large ones, each in turn. One
 * that is removed, or changed so that the filter does not match, before its turn is left out.
 * @throws ServiceError REPLY_TOO_LARGE
 */
export async function findDocuments(
  rows: Rows,
  { layout, reader }: { layout: Layout; reader: RowReader },
  filter: Filter,
  options: FindOptions<never>,
  inTurn: InTurn,
): Promise<unknown[]> {
  const { maxBytes = Infinity } = options;
  const query = findSql(layout, filter, options);
  const found = rows(`SELECT ${reader.smallSql} ${query.text}`, query.values);
  if (!found.some(hasLargeText)) {
    if (found.length * reader.texts * SMALL_BYTES > maxBytes)
      requireFit(
        sumOf(found, (row) => reader.bytesOf(row, filter)),
        maxBytes,
      );
    return found.map((row) => reader.documentOf(row, filter));
  }

  // Nothing is written between the two queries, because both are synchronous.
  const measured = rows(`SELECT ${idTextSql('"_id"')}, ${bytesSql(layout)} ${query.text}`, query.values);
  requireFit(
    sumOf(measured, ([, bytes]) => bytes as number),
    maxBytes,
  );
  const where = whereSql(layout, filter);
  const large = `SELECT ${reader.wholeSql} FROM "${layout.name}" WHERE "_id" = ? AND ${where.text}`;
  const documents: unknown[] = [];
  for (const [place, [id]] of measured.entries()) {
    const row = found[place]!;
    if (!hasLargeText(row)) documents.push(reader.documentOf(row, filter));
    else
      await inTurn(() => {
        const key = cellOf(idOfText(id as string), layout.isId('_id'));
        const [whole] = rows(large, [key, ...where.values]);
        if (whole) documents.push(reader.documentOf(whole, filter));
      });
  }
  return documents;
}

const sumOf = (rows: readonly Row[], bytesOf: (row: Row) => number): number =>
  rows.reduce((sum, row) => sum + bytesOf(row), 0);
