import { address } from '../core/config.ts';
import type { Log } from '../core/log.ts';
import { settingOf } from '../core/processes.ts';

/** A metric as a program declares it; docs/metrics.md lists all. */
export interface Metric<Label extends string = string> {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** What a series is told from others by: never an organization, agent, user or id, of which there are many. */
  readonly labels: readonly Label[];
  /** Upper bounds, of a histogram. */
  readonly buckets?: readonly number[];
}
type Labels<Label extends string> = Readonly<Record<Label, string>>;

/** One value of a gauge, or of a counter that somebody else counts. */
export interface Reading {
  metric: Metric;
  labels: Labels<string>;
  value: number;
}
export const reading = <Label extends string>(
  metric: Metric<Label>,
  labels: Labels<Label>,
  value: number,
): Reading => ({ metric, labels, value });

/** What the parts of a program tell. */
export interface Metrics {
  readonly isOn: boolean;
  add<Label extends string>(counter: Metric<Label>, labels: Labels<Label>, by?: number): void;
  observe<Label extends string>(histogram: Metric<Label>, labels: Labels<Label>, value: number): void;
  /** `read` is asked at each scrape. When it fails or takes too long, its series are missing in that scrape. */
  read(read: () => readonly Reading[] | Promise<readonly Reading[]>): void;
}
export interface OpenMetrics extends Metrics {
  /** host:port that it listens on; undefined when it is off. */
  readonly address: string | undefined;
  close(): Promise<void>;
}

const declare =
  (type: Metric['type']) =>
  <const Label extends string = never>(
    name: string,
    help: string,
    labels: readonly Label[] = [],
    buckets?: readonly number[],
  ): Metric<Label> => ({ type, name, help, labels, ...(buckets && { buckets }) });
export const counter = declare('counter');
export const gauge = declare('gauge');
export const histogram = declare('histogram');

/** Seconds: a read takes about a millisecond, a call at most twelve seconds. */
export const CALL_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 12] as const;

const nothing = (): void => undefined;
export const NO_METRICS: OpenMetrics = {
  ...{ isOn: false, address: undefined, add: nothing, observe: nothing, read: nothing },
  close: async () => undefined,
};

export const metricsConfig = (name: string) => ({
  [settingOf(name, 'METRICS_LISTEN')]: address({
    default: '',
    description:
      `host:port at which ${name} answers GET /metrics for Prometheus, without TLS and to everybody who reaches it: ` +
      '127.0.0.1, or an address that a network policy guards; empty: nowhere, and nothing is counted.',
  }),
});

/**
 * Listens for scrapes. Imports what that needs only if `listen` says where.
 * @throws StartError when the address cannot be listened on
 */
export async function openMetrics(
  name: string,
  listen: string,
  declared: readonly Metric[],
  log: Log,
): Promise<OpenMetrics> {
  if (listen === '') return NO_METRICS;
  const { startMetrics } = await import('./metrics-registry.ts');
  return startMetrics(name, listen, declared, log);
}
