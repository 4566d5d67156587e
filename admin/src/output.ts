import Table from 'cli-table3';

export interface Column<T> {
  title: string;
  value(row: T): string | number | boolean | undefined;
}

const DEFAULT_WIDTH = 100;
const NO_LINES = Object.fromEntries(
  ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'].map((line) => [line, '']),
);

/** A table that fits the terminal (the widest column gives way), or the rows as JSON. */
export function print<T extends object>(rows: readonly T[], columns: readonly Column<T>[], asJson: boolean): void {
  if (asJson) return write(JSON.stringify(rows, null, 2));
  if (rows.length === 0) return write('None.');
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const widths = fit(columns.map((column, i) => Math.max(column.title.length, ...cells.map((line) => (line[i] as string).length))), process.stdout.columns ?? DEFAULT_WIDTH);
  const table = new Table({ head: columns.map((column) => column.title), chars: { ...NO_LINES, middle: ' ' }, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 1 }, colWidths: widths.map((width) => width + 1) });
  table.push(...cells);
  write(table.toString().split('\n').map((line) => line.trimEnd()).join('\n'));
}

/** One record as lines of name and value, or as JSON. */
export function printRecord(record: object, asJson: boolean): void {
  if (asJson) return write(JSON.stringify(record, null, 2));
  const entries = Object.entries(record).filter(([, value]) => value !== undefined);
  const width = Math.max(...entries.map(([name]) => name.length));
  write(entries.map(([name, value]) => `${name.padEnd(width)}  ${Array.isArray(value) ? value.join(', ') : printable(value)}`).join('\n'));
}

function fit(widths: readonly number[], terminalWidth: number): number[] {
  const fitted = [...widths];
  const total = () => fitted.reduce((sum, width) => sum + width + 2, 0);
  while (total() > terminalWidth) {
    const widest = fitted.indexOf(Math.max(...fitted));
    if ((fitted[widest] as number) <= 8) break;
    fitted[widest] = Math.max(8, (fitted[widest] as number) - (total() - terminalWidth));
  }
  return fitted;
}

// names come from customers: no control character reaches the terminal
const printable = (value: unknown): string => (value === undefined ? '-' : String(value).replace(/\p{C}/gu, '?'));

const write = (text: string): void => void process.stdout.write(`${text}\n`);

/** 1,250,000 micro-credits -> "1.25". */
export const inCredits = (micros: number): string => (micros / 1_000_000).toLocaleString('en', { maximumFractionDigits: 6 });

/** "12.5" -> 12,500,000 micro-credits; undefined when it is no amount of at most six decimals. */
export function toMicros(credits: string): number | undefined {
  const match = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(credits);
  return match ? Number(match[1]) * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0')) : undefined;
}
