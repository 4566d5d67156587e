import Table from 'cli-table3';

type Cell = string | number | boolean | undefined;
export interface Column<T> {
  title: string;
  value(row: T): Cell;
  /**
   * `id`: narrowed first, to the end, by which ids differ; `last`: narrowed last, because it is what names the row;
   * `never`: not narrowed, although the line becomes longer than the terminal.
   */
  narrowed?: 'id' | 'last' | 'never';
}

/** Columns are not narrowed below this, the width of a date. */
const MIN_WIDTH = 10;
/** An ellipsis and the end of a UUIDv7, which is random. */
const ID_WIDTH = 13;
const GAP = 2;
const LINES = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
  'left',
  'left-mid',
  'mid',
  'mid-mid',
  'right',
  'right-mid',
];
const NO_LINES = { ...Object.fromEntries(LINES.map((line) => [line, ''])), middle: ' ' };

/** Formats rows as a table, one line a row, at most `width` characters wide: cuts the cells of the widest columns. */
export function tableOf<T extends object>(rows: readonly T[], columns: readonly Column<T>[], width: number): string {
  if (rows.length === 0) return 'None.';
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const natural = columns.map((column, i) =>
    Math.max(column.title.length, ...cells.map((line) => widthOf(line[i] as string))),
  );
  const widths = fit(natural, columns, width);
  const table = new Table({
    head: columns.map(({ title }) => title),
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': GAP - 1 },
    colWidths: widths.map((each) => each + GAP - 1),
  });
  table.push(
    ...cells.map((line) => line.map((cell, i) => cut(cell, widths[i] as number, columns[i]?.narrowed === 'id'))),
  );
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Formats one record as lines of name and value; leaves out undefined values. */
export function linesOf(record: object): string {
  const entries = Object.entries(record).filter(([, value]) => value !== undefined);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(Array.isArray(value) ? inList(value) : value)}`)
    .join('\n');
}

function fit(natural: readonly number[], columns: readonly Column<never>[], width: number): number[] {
  const fitted = [...natural];
  const excess = (): number => fitted.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  const rounds: readonly (readonly [Column<never>['narrowed'], least: number])[] = [
    ['id', ID_WIDTH],
    [undefined, MIN_WIDTH],
    ['last', MIN_WIDTH],
  ];
  for (const [narrowed, least] of rounds)
    while (excess() > 0) {
      const candidates = fitted.map((each, i) => (columns[i]?.narrowed === narrowed ? each : 0));
      const widest = Math.max(...candidates);
      if (widest <= least) break;
      fitted[candidates.indexOf(widest)] = widest - 1;
    }
  return fitted;
}

/** Cuts text that is wider than `width` and puts an ellipsis where it was cut. */
function cut(text: string, width: number, keepEnd: boolean): string {
  if (widthOf(text) <= width) return text;
  const kept: string[] = [];
  let left = width - 1;
  for (const character of keepEnd ? [...text].reverse() : text) {
    left -= widthOf(character);
    if (left < 0) break;
    kept.push(character);
  }
  return keepEnd ? `…${kept.reverse().join('')}` : `${kept.join('')}…`;
}

// names come from customers, so no control character may reach the terminal
const printable = (value: unknown): string =>
  value === undefined ? '-' : inSeconds(String(value)).replace(/\p{C}/gu, '?');
/** A text of several lines, as it may reach the terminal. */
export const textOf = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, '?');
/** JSON text as its author wrote it, with escapes for the characters that a terminal may take for a command. */
export const jsonTextOf = (json: string): string =>
  // between its values, JSON text may have carriage returns
  json
    .replace(/\r(?!\n)/g, '\n')
    .replace(/[^\P{C}\n\t\r]/gu, (text) =>
      text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
    );
export const jsonOf = (value: object, indented = false): string => {
  const json = stringify(value)!;
  return jsonTextOf(indented ? indentedJson(json) : json);
};

/** In a record that is printed as JSON: a value of which the text is known, and is printed as it is spelled. */
export class StoredJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** As JSON.stringify, which would make values of stored texts and lose `1.0`. */
function stringify(value: unknown): string | undefined {
  if (value instanceof StoredJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => stringify(item) ?? 'null').join(',')}]`;
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => [JSON.stringify(name), stringify(member)]);
  return `{${members
    .filter(([, text]) => text !== undefined)
    .map((member) => member.join(':'))
    .join(',')}}`;
}

/** JSON text with the white space of JSON.stringify(value, null, 2), in which everything stays as it is spelled. */
function indentedJson(json: string): string {
  let indent = '\n';
  let text = '';
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\[^][^"\\]*)*"|[[{]\s*[\]}]|[[\]{}:,]|[^\s[\]{}:,"]+/g)) {
    if (token === '{' || token === '[') indent += '  ';
    if (token === '}' || token === ']') indent = indent.slice(0, -2);
    if (token === '}' || token === ']') text += indent + token;
    else if (token === '{' || token === '[' || token === ',') text += token + indent;
    else if (token === ':') text += ': ';
    else text += token.replace(/^([[{])\s+/, '$1');
  }
  return text;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu;
const widthOf = (text: string): number => [...text].length + (text.match(WIDE)?.length ?? 0);

/** Formats an ISO 8601 time without milliseconds and with a space. */
const inSeconds = (text: string): string => text.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$/, '$1 $2Z');
export const inList = (values: readonly string[]): string => values.join(', ') || '-';

/** 1,250,000 micro-credits -> "1.25". */
export const inCredits = (micros: number): string =>
  (micros / 1_000_000).toLocaleString('en', { maximumFractionDigits: 6 });

/** "12.5" -> 12,500,000 micro-credits; undefined unless it is an amount with at most six decimals. */
export function toMicros(credits: string): number | undefined {
  const match = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(credits);
  return match ? Number(match[1]) * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0')) : undefined;
}
