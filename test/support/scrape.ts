import { settingOf, PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { freePorts } from './addresses.ts';

/** The values of a scrape by their series: `name{label="value",other="value"}`, in the order that the program gives. */
export type Series = ReadonlyMap<string, number>;

export async function scrape(address: string): Promise<Series> {
  const response = await fetch(`http://${address}/metrics`);
  if (response.status !== 200) throw new Error(`${address} answered ${response.status}`);
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

/** The sum of the series of this name that have these labels; undefined when there is none. */
export function sumOf(series: Series, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const found = [...series].filter(([key]) => {
    const start = `${key}{`.indexOf('{');
    const own = key.slice(start + 1, -1).split(',');
    return key.slice(0, start) === name && wanted.every((each) => own.includes(each));
  });
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + value, 0);
}

/** Settings by which every process tells its metrics, and the addresses. */
export async function metricsSettings(): Promise<{
  env: Record<string, string>;
  at: Readonly<Record<ProcessName, string>>;
}> {
  const names = Object.keys(PROCESSES) as ProcessName[];
  const ports = await freePorts(names.length);
  const at = Object.fromEntries(names.map((name, i) => [name, `127.0.0.1:${ports[i]}`])) as Record<ProcessName, string>;
  return { at, env: Object.fromEntries(names.map((name) => [settingOf(name, 'METRICS_LISTEN'), at[name]])) };
}
