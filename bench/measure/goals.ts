import { figure, ratioName } from './report.ts';

/** A goal names one figure of a run, and what it is compared with. */
interface Goal {
  what: string;
  /** Names of figures; the largest of those that were measured counts. */
  of: readonly string[];
  /**
   * The figure that `limit` is multiplied with. Where rounds alternated, the median of their ratios counts, not the
   * ratio of the medians.
   */
  by?: string;
  bound: 'at most' | 'at least';
  limit: number;
  unit: string;
}

const GOALS: readonly Goal[] = [
  cpu('get', 0.8),
  {
    what: 'get, requests/s (1.25 × PocketBase is about 0.9 × stock)',
    of: ['product get req/s'],
    by: 'stock get req/s',
    bound: 'at least',
    limit: 0.9,
    unit: '/s',
  },
  cpu('list', 1),
  cpu('create', 1.1),
  cpu('run', 2.5, 'create in place of run'),
  ofRuntime('script', 1.5),
  ofRuntime('http', 1.2),
  alone('get', 1),
  alone('create', 3),
  alone('run', 6),
  goal('audit keeps up with creates: drained after the last one', ['product create drain s'], 1, 's'),
  goal('memory at start (PSS)', ['product pss at start'], 450, 'MB'),
  goal(
    'memory under load, runners included (PSS)',
    ['get', 'list', 'create', 'run', 'tokens', 'mixed'].map((scenario) => `product ${scenario} pss`),
    600,
    'MB',
  ),
  ...['two replicas', 'two replicas that share the load of one'].flatMap((replicas) =>
    ['get', 'create'].map((scenario): Goal => ({
      what: `${scenario} by ${replicas}, CPU per request`,
      of: [`${replicas} ${scenario} cpu`],
      by: `one replica ${scenario} cpu`,
      bound: 'at most',
      limit: 1.1,
      unit: 'µs',
    })),
  ),
  ...['get', 'list'].map((scenario): Goal => ({
    what: `${scenario} among many objects (npm run bench -- memory), CPU per request`,
    of: [`many objects ${scenario} cpu`],
    by: `few objects ${scenario} cpu`,
    bound: 'at most',
    limit: 1.2,
    unit: 'µs',
  })),
  ...['get', 'create', 'run'].map((scenario): Goal =>
    goal(`metrics: CPU of a ${scenario} with them, of that without`, [`metrics ${scenario}`], 1.03, ''),
  ),
  goal('token check: CPU of auth per get', ['product get auth cpu'], 25, 'µs'),
  {
    what: 'busiest main thread at 64 connections, share of the time in which it ran or waited for a core',
    of: ['product get busy'],
    bound: 'at least',
    limit: 0.9,
    unit: '',
  },
  goal('disk for an object of 300 bytes', ['product bytes per object'], 2_000, 'bytes'),
];

function cpu(scenario: string, limit: number, ofStock = scenario): Goal {
  return {
    what: `${scenario}, CPU per request`,
    of: [`product ${scenario} cpu`],
    by: `stock ${ofStock} cpu`,
    bound: 'at most',
    limit,
    unit: 'µs',
  };
}
function ofRuntime(type: string, limit: number): Goal {
  return {
    what: `run of the runtime ${type}, CPU per request`,
    of: [`${type} run cpu`],
    by: 'expression run cpu',
    bound: 'at most',
    limit,
    unit: 'µs',
  };
}
function alone(kind: string, limit: number): Goal {
  return goal(`${kind} alone, p50`, [`product ${kind} alone ms`], limit, 'ms');
}
function goal(what: string, of: readonly string[], limit: number, unit: string): Goal {
  return { what, of, bound: 'at most', limit, unit };
}

/** One line for each goal: met, missed or not measured, with the figure and what it is compared with. */
export const verdicts = (figures: Readonly<Record<string, number>>): string[] =>
  GOALS.map((one) => verdict(one, figures));

function verdict({ what, of, by, bound, limit, unit }: Goal, figures: Readonly<Record<string, number>>): string {
  const measured = of.flatMap((name) => figures[name] ?? []);
  const base = by === undefined ? 1 : figures[by];
  if (measured.length === 0 || base === undefined) return `not measured  ${what}`;
  const value = Math.max(...measured);
  const ratio = figures[ratioName(of[0] as string, by ?? '')] ?? value / base;
  const isMet = bound === 'at most' ? ratio <= limit : ratio >= limit;
  const text = `${figure(value, 2)} ${unit}`.trim();
  const compared =
    by === undefined
      ? `goal: ${bound} ${limit}`
      : `${figure(ratio, 2)} × ${by.replace(/ (cpu|req\/s)$/, '')} (${figure(base, 0)} ${unit}; medians); ` +
        `goal: ${bound} ${limit} ×`;
  return `${(isMet ? 'met' : 'missed').padEnd(12)}  ${what}: ${text}; ${compared}`;
}
