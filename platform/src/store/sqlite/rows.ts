import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { parseJson } from '../../core/parse-json.ts';
import { idOfText, idTextSql, uuidTextSql, valueOfCell } from './cells.ts';
import { REST, type Layout } from './layout.ts';

export type Row = readonly SQLOutputValue[];
/** Runs a SELECT. */
export type Rows = (sql: string, values: readonly SQLInputValue[]) => Row[];

/** Texts up to this size come with the first query; SQLite keeps larger ones apart, and reading them takes long. */
const SMALL_BYTES = 4_096;
/** Empty bytes stand in place of a text that is larger. octet_length does not read the text. */
const small = (column: string): string =>
  `CASE WHEN octet_length(${column}) > ${SMALL_BYTES} THEN x'' ELSE ${column} END`;
const isLargeText = (cell: SQLOutputValue): boolean => cell instanceof Uint8Array && cell.length === 0;

/** Reads rows of a table as documents. */
export interface RowReader {
  /** The columns to select for `documentOf`: without large texts, or with all. */
  readonly smallSql: string;
  readonly wholeSql: string;
  /** The most bytes of a document without large texts. */
  readonly mostBytes: number;
  /** @param filter with the values of the known fields */
  documentOf(row: Row, filter: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** The bytes of a document that has no large text. */
  bytesOf(row: Row, filter: Readonly<Record<string, unknown>>): number;
}

/** What the fields of a document may take beside its texts when they are sent: ids, numbers and names. */
const fieldBytes = ({ fields }: Layout): number => fields.reduce((sum, field) => sum + field.length + 40, 0);

/** How many bytes a document has. */
export const bytesSql = (layout: Layout): string =>
  `${fieldBytes(layout)} + ` +
  [...layout.fields.filter((field) => !layout.isId(field) && layout.kindOf(field) !== 'number'), REST]
    .map((field) => `coalesce(octet_length("${field}"), 0)`)
    .join(' + ');

export const hasLargeText = (row: Row): boolean => row.some(isLargeText);

/** The fields of which the filter names the value: they need not be read. */
export const knownFields = (layout: Layout, filter: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(filter).filter((field) => layout.has(field) && typeof filter[field] === 'string');

export function makeRowReader(layout: Layout, known: readonly string[], omit: readonly string[] = []): RowReader {
  const read = layout.fields.filter((field) => !known.includes(field) && !omit.includes(field));
  const ids = read.map((field) => layout.isId(field));
  const select = (textSql: (column: string) => string): string =>
    [...read, REST]
      .map((field) => {
        const column = `"${field}"`;
        const kind = layout.kindOf(field);
        if (kind === 'id') return uuidTextSql(column);
        if (kind === 'organization') return idTextSql(column);
        return kind === 'number' || kind === 'text' ? column : textSql(column);
      })
      .join(', ');
  return {
    smallSql: select(small),
    wholeSql: select((column) => column),
    mostBytes: fieldBytes(layout) + (layout.fields.length + 1) * SMALL_BYTES,
    documentOf(row, filter) {
      const rest = row[read.length];
      const document = typeof rest === 'string' ? (parseJson(rest) as Record<string, unknown>) : {};
      for (const field of known) document[field] = filter[field];
      for (let place = 0; place < read.length; place++) {
        const cell = row[place];
        if (cell === null || cell === undefined || (cell === '' && ids[place])) continue;
        document[read[place]!] = ids[place] ? idOfText(cell as string) : valueOfCell(cell);
      }
      return document;
    },
    bytesOf: (row, filter) => fieldBytes(layout) + sumOfBytes(row) + sumOfBytes(known.map((field) => filter[field])),
  };
}

const sumOfBytes = (texts: readonly unknown[]): number =>
  texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : 0), 0);
