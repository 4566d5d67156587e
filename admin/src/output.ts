import Table from 'cli-table3';

type Cell = string | number | boolean | undefined;
export interface Column<T> {
  title: string;
  value(row: T): Cell;
  /** The column is narrowed last, because its values (ids) are copied from the table. */
  keep?: true;
}

/** Columns are not narrowed below this, the width of a date. */
const MIN_WIDTH = 10;
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

/** Formats rows as a table at most `width` characters wide: narrows the widest columns and wraps their cells. */
export function tableOf<T extends object>(rows: readonly T[], columns: readonly Column<T>[], width: number): string {
  if (rows.length === 0) return 'None.';
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const natural = columns.map((column, i) =>
    Math.max(column.title.length, ...cells.map((line) => widthOf(line[i] as string))),
  );
  const widths = fit(
    natural,
    columns.map(({ keep }) => keep === true),
    width,
  );
  const table = new Table({
    head: columns.map(({ title }) => title),
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': GAP - 1 },
    colWidths: widths.map((each) => each + GAP - 1),
  });
  table.push(...cells.map((line) => line.map((cell, i) => wrapped(cell, widths[i] as number))));
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

function fit(natural: readonly number[], kept: readonly boolean[], width: number): number[] {
  const fitted = [...natural];
  const tooWide = (): boolean => fitted.reduce((sum, each) => sum + each + GAP, -GAP) > width;
  for (const mayShrink of [(i: number) => !kept[i], () => true]) {
    while (tooWide()) {
      const candidates = fitted.map((each, i) => (mayShrink(i) ? each : 0));
      const widest = Math.max(...candidates);
      if (widest <= MIN_WIDTH) break;
      fitted[candidates.indexOf(widest)] = widest - 1;
    }
  }
  return fitted;
}

/** Wraps text into lines of at most `width`, at spaces where possible. */
function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(...piecesOf(word, width));
  }
  return lines.join('\n');
}

function piecesOf(word: string, width: number): string[] {
  const pieces = [''];
  for (const character of word) {
    if (widthOf(pieces.at(-1) + character) > width) pieces.push('');
    pieces[pieces.length - 1] += character;
  }
  return pieces;
}

// names come from customers, so no control character may reach the terminal
const printable = (value: unknown): string =>
  value === undefined ? '-' : inSeconds(String(value)).replace(/\p{C}/gu, '?');
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu;
const widthOf = (text: string): number => [...text].length + (text.match(WIDE)?.length ?? 0);

/** Formats an ISO 8601 time without milliseconds and with a space, at which the line can wrap. */
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
