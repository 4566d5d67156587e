import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from 'platform/service/testing.ts';
import { afterRequests, countOf, runClosedLoop } from '../load/closed-loop.ts';
import { SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { countingEnv, workOf, type WorkCounts } from '../measure/counters.ts';
import { drain, untilDrained } from '../measure/drain.ts';
import { figure, medianOf, noFindings, printTable, type Findings } from '../measure/report.ts';
import { warmUp } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import type { RecordCounts } from '../systems/records.ts';
import { targetOf, type System } from '../systems/system.ts';
import { interleaved } from './compare.ts';

const NAMES = ['get', 'list', 'create', 'run'] as const;
const PROCESSES = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const COUNTED_OBJECTS = 1_000;
const COUNTED_CALLS = 500;
const IDLE_S = 3;

/** One connection alone: latencies of each system, and what the product does for one call. */
export async function measureAlone(systems: readonly System[], settings: Settings): Promise<Findings> {
  const findings = noFindings();
  const one = { ...settings, connections: 1 };
  const rows: string[][] = [];
  for (const name of NAMES) {
    const scenario = SCENARIOS[name] as Scenario;
    for (const system of systems) findings.failures.push(...(await warmUp(system, scenario, one)));
    const rounds = await interleaved(systems, one, scenario);
    const cells = systems.map((system) => {
      const own = rounds.filter((round) => round.system === system.name);
      const [p50, p99] = [medianOf(own, ({ p50Ms }) => p50Ms), medianOf(own, ({ p99Ms }) => p99Ms)];
      findings.figures[`${system.name} ${name} alone ms`] = p50;
      return `${figure(p50, 2)} / ${figure(p99)}`;
    });
    rows.push([scenario.title, ...cells]);
    findings.failures.push(...rounds.flatMap(({ failures }) => failures));
  }
  process.stdout.write('\n');
  printTable(['one connection, p50 / p99 ms', ...systems.map(({ name }) => name)], rows);
  return findings;
}

/** Counts commits, RPCs, messages and events for one call, on a product that counts its work. */
export async function countWork(settings: Settings): Promise<Findings> {
  const folder = temporaryFolder();
  const objects = Math.min(COUNTED_OBJECTS, settings.objects);
  const product = await startProduct({ name: 'product', objects, env: countingEnv(folder.path) });
  const findings = noFindings();
  try {
    await untilDrained(product.records!);
    const idle = await idleWork(product, folder.path);
    const rows: string[][] = [];
    for (const name of NAMES) rows.push(await rowOf(name, product, folder.path, idle, findings));
    printTable(['for one call', 'commits', 'RPCs', 'messages on streams', 'events and audit entries'], rows);
    return findings;
  } finally {
    await product.stop();
    folder.remove();
  }
}

type Work = Record<string, WorkCounts>;
const zero = (): WorkCounts => ({ commits: 0, calls: 0, messages: 0 });

/** Of each process, in one second without a request: leases and the like, which are no work of a call. */
async function idleWork(product: Product, folder: string): Promise<Work> {
  const before = await work(product, folder);
  await delay(IDLE_S * 1000);
  return minus(await work(product, folder), before, (count) => count / IDLE_S);
}

async function rowOf(
  name: string,
  product: Product,
  folder: string,
  idle: Work,
  findings: Findings,
): Promise<string[]> {
  const scenario = SCENARIOS[name] as Scenario;
  const records = product.records!;
  const [counts, before, since] = [await records.counts(), await work(product, folder), performance.now()];
  const result = await runClosedLoop(targetOf(product, scenario), 1, afterRequests(COUNTED_CALLS));
  const { failures } = await drain(records, counts, result.succeeded);
  const seconds = (performance.now() - since) / 1000;
  findings.failures.push(...result.failures, ...failures);
  const used = minus(await work(product, folder), before);
  const calls = countOf(result);
  const cell = (of: keyof WorkCounts): string => {
    const perCall = PROCESSES.map(
      (process) => [process, Math.max(0, used[process]![of] - idle[process]![of] * seconds) / calls] as const,
    ).filter(([, count]) => count >= 0.05);
    const sum = perCall.reduce((total, [, count]) => total + count, 0);
    findings.figures[`product ${name} ${of}`] = sum;
    return `${figure(sum)} (${perCall.map(([process, count]) => `${process} ${figure(count)}`).join(', ') || 'none'})`;
  };
  const written = await records.counts();
  const events = (Object.keys(written) as (keyof RecordCounts)[])
    .map((record) => [record, (written[record] - counts[record]) / calls] as const)
    .filter(([, count]) => count > 0);
  return [
    scenario.title,
    cell('commits'),
    cell('calls'),
    cell('messages'),
    events.map(([record, count]) => `${record} ${figure(count)}`).join(', ') || 'none',
  ];
}

async function work(product: Product, folder: string): Promise<Work> {
  const counts = await Promise.all(PROCESSES.map((name) => workOf(folder, product.stack.pidOf(name))));
  return Object.fromEntries(PROCESSES.map((name, index) => [name, counts[index] ?? zero()]));
}

const minus = (one: Work, other: Work, scale: (count: number) => number = (count) => count): Work =>
  Object.fromEntries(
    Object.entries(one).map(([name, { commits, calls, messages }]) => {
      const before = other[name] ?? zero();
      return [
        name,
        {
          commits: scale(commits - before.commits),
          calls: scale(calls - before.calls),
          messages: scale(messages - before.messages),
        },
      ];
    }),
  );
