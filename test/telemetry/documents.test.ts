import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { codeOf, ERRORS, isFault, type KnownReason } from 'platform/core/errors.ts';
import type { Metric } from 'platform/telemetry/metrics.ts';
import { metricsPage } from '../../docs/metrics-page.ts';
import { alerts, DECLARED, panels } from '../support/declared-metrics.ts';
import { REPOSITORY } from '../support/stack.ts';

const METRICS = new Map<string, Metric>(
  Object.values(DECLARED)
    .flat()
    .map((metric) => [metric.name, metric]),
);
/** Of the kubelet, for volumes of engines. */
const OF_OTHERS = ['kubelet_volume_stats_available_bytes', 'kubelet_volume_stats_capacity_bytes'];
/** What the program and Prometheus add to every series. */
const ADDED = ['program', 'instance', 'le'];

/** The names that a histogram has. */
const metricOf = (name: string): Metric | undefined =>
  METRICS.get(name) ?? histogramOf(METRICS.get(name.replace(/_(bucket|count|sum)$/, '')));
const histogramOf = (metric: Metric | undefined): Metric | undefined =>
  metric?.type === 'histogram' ? metric : undefined;

interface Used {
  faults: string[];
  names: string[];
}
/** What an expression asks for, and what is wrong with it. */
function usedIn(expression: string): Used {
  // Grafana puts a duration there
  const text = expression.replaceAll('$__rate_interval', '5m');
  const used: Used = { faults: [], names: [] };
  const labels: string[] = [];
  const functions: string[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      const word = text.slice(from, to);
      if (type.isError) used.faults.push(`it is no PromQL at ${from}`);
      if (type.name === 'VectorSelector') used.names.push(/^\w+/.exec(word)?.[0] ?? word);
      if (type.name === 'LabelName') labels.push(word);
      if (['Rate', 'Increase'].includes(type.name)) functions.push(word);
    },
  });
  const found = used.names.map(metricOf);
  used.names.forEach((name, place) => {
    if (!found[place] && !OF_OTHERS.includes(name)) used.faults.push(`nobody tells ${name}`);
  });
  const known = [...ADDED, ...found.flatMap((metric) => metric?.labels ?? [])];
  if (!used.names.some((name) => OF_OTHERS.includes(name)))
    used.faults.push(...labels.filter((label) => !known.includes(label)).map((label) => `it has no label ${label}`));
  // a rate of a gauge is a number without a meaning
  if (functions.length > 0 && found.every((metric) => metric?.type === 'gauge'))
    used.faults.push('it is the rate of a gauge');
  if (found.some((metric) => metric?.type === 'counter') && functions.length === 0)
    used.faults.push('it compares a counter, which only rises');
  return used;
}

const expressions = () => [
  ...alerts().map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
  ...panels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [`panel ${title}`, expr] as const)),
];

describe('what is declared as metrics', () => {
  it('is in docs/metrics.md', () => {
    expect(readFileSync(join(REPOSITORY, 'docs/metrics.md'), 'utf8')).toBe(metricsPage());
  });

  it('is named as Prometheus asks: counters in _total, times in seconds, sizes in bytes', () => {
    const wrong = [...METRICS.values()].filter(
      ({ name, type, help }) =>
        !/^(agentmemory|process|nodejs)_[a-z_]+$/.test(name) ||
        (type === 'counter') !== name.endsWith('_total') ||
        /(_ms|_millis|_kb|_mb)$/.test(name) ||
        !/[.]$/.test(help),
    );
    expect(wrong).toEqual([]);
    expect(METRICS.size).toBeGreaterThan(40);
  });

  it('tells no series from others by what tenants make', () => {
    const labels = [...new Set([...METRICS.values()].flatMap((metric) => metric.labels))].sort();
    expect(labels).toEqual([
      ...['certificate', 'code', 'engine', 'group', 'job', 'kind', 'limit', 'method', 'outcome', 'percentile', 'place'],
      ...['role', 'route', 'runtime', 'service', 'state', 'status', 'topic', 'verb'],
    ]);
  });

  it('is on the dashboard, each metric', () => {
    const used = new Set(panels().flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => usedIn(expr).names)));
    const shown = [...used].map((name) => metricOf(name)?.name);
    expect([...METRICS.keys()].filter((name) => !shown.includes(name))).toEqual([]);
  });
});

describe('alerts and dashboard', () => {
  it.each(expressions())('ask for what is told: %s', (_name, expr) => {
    expect(usedIn(expr)).toMatchObject({ faults: [], names: expect.arrayContaining([expect.any(String)]) });
  });

  it('would be found wrong', () => {
    const faultsOf = (expr: string) => usedIn(expr).faults;
    expect(faultsOf('rate(agentmemory_runs_totals[5m])')).toContain('nobody tells agentmemory_runs_totals');
    expect(faultsOf('sum by (organization) (rate(agentmemory_runs_total[5m]))')).toEqual([
      'it has no label organization',
    ]);
    expect(faultsOf('rate(agentmemory_runs_total{agent="a"}[5m])')).toEqual(['it has no label agent']);
    expect(faultsOf('rate(agentmemory_runs_total[5m]')).not.toEqual([]);
    expect(faultsOf('rate(agentmemory_outbox_rows[5m])')).toEqual(['it is the rate of a gauge']);
    expect(faultsOf('agentmemory_runs_total > 5')).toEqual(['it compares a counter, which only rises']);
    expect(faultsOf('agentmemory_run_seconds_buckets')).toEqual(['nobody tells agentmemory_run_seconds_buckets']);
  });

  it('say in sentences what they mean and what to do, and name their runbook', () => {
    for (const { alert, labels, annotations } of alerts()) {
      expect(alert).toMatch(/^([A-Z][a-z]+)+$/);
      expect(['critical', 'warning']).toContain(labels.severity);
      for (const sentence of [annotations.description, annotations.action]) expect(sentence).toMatch(/^[A-Z].*[.]$/);
      expect(annotations.runbook_url).toBe(`docs/operations.md#alert-${alert.toLowerCase()}`);
    }
    const names = alerts().map(({ alert }) => alert);
    expect(names).toEqual([...new Set(names)]);
  });

  it('call the same replies faults as logs and traces do', () => {
    const { expr } = alerts().find(({ alert }) => alert === 'RequestsFail')!;
    const left = /status=~"5\.\.", code!~"([a-z_|]+)"/.exec(expr)?.[1]?.split('|').sort();
    const codes = Object.entries(ERRORS)
      .filter(([, { http }]) => http >= 500)
      .map(([reason]) => codeOf(reason as KnownReason));
    expect(left).toEqual(codes.filter((code) => !isFault(500, code)).sort());
  });

  it('are tried, each of them', () => {
    const tests = readFileSync(join(REPOSITORY, 'deploy/telemetry/alerts.test.yaml'), 'utf8');
    expect(alerts().filter(({ alert }) => !tests.includes(`alertname="${alert}"`))).toEqual([]);
  });
});
