import { median } from '../load/latencies.ts';
import { totalCpu, type Round } from './round.ts';

/** What a command found: figures by name for the goals, and what failed. */
export interface Findings {
  figures: Record<string, number>;
  failures: string[];
}
/** The name of the figure that is one figure divided by another, round by round. */
export const ratioName = (one: string, other: string): string => `${one} / ${other}`;

export const noFindings = (): Findings => ({ figures: {}, failures: [] });

export function addFindings(to: Findings, { figures, failures }: Findings): void {
  Object.assign(to.figures, figures);
  to.failures.push(...failures);
}

/** Prints a table in Markdown: the first column is text, the others are figures. */
export function printTable(heads: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  process.stdout.write(
    line(heads) + `|---|${'--:|'.repeat(heads.length - 1)}\n` + rows.map(line).join('') + (rows.length > 0 ? '\n' : ''),
  );
}

export function figure(value: number, digits = value < 10 ? 1 : 0): string {
  return Number.isFinite(value) ? value.toLocaleString('en', { maximumFractionDigits: digits }) : '–';
}

/** Prints the medians of the rounds of each system as a column. */
export function printRounds(title: string, rounds: readonly Round[]): void {
  const systems = [...new Set(rounds.map(({ system }) => system))];
  const own = (system: string): Round[] => rounds.filter((round) => round.system === system);
  const row = (name: string, cell: (rounds: readonly Round[]) => string): string[] => [
    name,
    ...systems.map((system) => cell(own(system))),
  ];
  const number = (name: string, of: (round: Round) => number): string[] =>
    row(name, (some) => figure(medianOf(some, of)));
  process.stdout.write(`\n`);
  printTable(
    [title, ...systems],
    [
      number('requests/s', ({ requestsPerSecond }) => requestsPerSecond),
      number('p50 ms', ({ p50Ms }) => p50Ms),
      number('p99 ms', ({ p99Ms }) => p99Ms),
      number('CPU µs per request', totalCpu),
      row('of that', (some) =>
        Object.keys(some[0]!.cpu)
          .map(
            (process) =>
              `${process} ${figure(
                medianOf(some, ({ cpu }) => cpu[process] as number),
                0,
              )}`,
          )
          .join(', '),
      ),
      row('busiest main thread', (some) => {
        const percent = (of: (round: Round) => number): string => figure(100 * medianOf(some, of), 0);
        const processes = [...new Set(some.map(({ busiest }) => busiest.process))].join(', ');
        const waited = percent(({ busiest }) => busiest.waitedForCore);
        return `${processes} ran ${percent(({ busiest }) => busiest.ran)} %, waited for a core ${waited} %`;
      }),
      row('waiting at the end', (some) =>
        some[0]!.drained
          ? `${figure(
              medianOf(some, ({ drained }) => drained!.backlog.outbox + drained!.backlog.audit),
              0,
            )} events, ` + `drained in ${figure(medianOf(some, ({ drained }) => drained!.tookMs) / 1000)} s`
          : '',
      ),
      number('memory MB (PSS)', ({ pssMb }) => pssMb),
      row('failed', (some) => String(some.reduce((sum, { failures }) => sum + failures.length, 0))),
    ],
  );
}

export const medianOf = (rounds: readonly Round[], of: (round: Round) => number): number => median(rounds.map(of));
