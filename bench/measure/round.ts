import { after, countOf, runClosedLoop, type LoadResult, type Target } from '../load/closed-loop.ts';
import { percentile } from '../load/latencies.ts';
import { nextOf, type Scenario } from '../load/scenarios.ts';
import { whenSteady } from '../load/warm-up.ts';
import type { Settings } from '../settings.ts';
import type { System } from '../systems/system.ts';
import { drain, untilDrained, type Drained } from './drain.ts';
import { activeOf } from './processes.ts';

/** What one round of load on one system showed. */
export interface Round {
  system: string;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU microseconds per request of each process, the time in which the backlog drained included. */
  cpu: Record<string, number>;
  /** The process that had something to do for most of the time while requests arrived, and its share (0 to 1). */
  busiest: { process: string; share: number };
  /** After the requests; for a system with events. */
  drained?: Drained;
  /** Of all processes, when the last request was answered. */
  pssMb: number;
  /** Requests that failed, and records that are too many or too few. */
  failures: string[];
}

export const totalCpu = ({ cpu }: Round): number => Object.values(cpu).reduce((sum, micros) => sum + micros, 0);

const targetOf = (system: System, scenario: Scenario): Target => ({
  addresses: system.addresses,
  next: nextOf(scenario, system.accessesOf(scenario)),
});

/**
 * Sends requests until the throughput is steady, and waits until what they changed has drained.
 * @returns what failed
 */
export async function warmUp(system: System, scenario: Scenario, settings: Settings): Promise<string[]> {
  const { failures } = await runClosedLoop(
    targetOf(system, scenario),
    settings.connections,
    whenSteady(settings.warmUpSeconds),
  );
  if (system.records) await untilDrained(system.records);
  return failures.map((failure) => `${system.name}: ${failure}`);
}

/** One round on so many connections, each of which sends its next request when it has its answer. */
export const closedRound = (system: System, scenario: Scenario, { connections, seconds }: Settings): Promise<Round> =>
  measureRound(system, () => runClosedLoop(targetOf(system, scenario), connections, after(seconds)));

/** Measures whatever load `run` puts on the system. */
export async function measureRound(system: System, run: () => Promise<LoadResult>): Promise<Round> {
  const { records } = system;
  const counts = await records?.counts();
  const before = system.cpu();
  const activeBefore = activeTimes(system);
  const result = await run();
  const active = activeTimes(system);
  const pssMb = system.pssMb();
  const drained = records && counts && (await drain(records, counts, result.succeeded));
  const after = system.cpu();
  const requests = countOf(result);
  const [busiest] = active
    .map(({ process, micros }, index) => ({
      process,
      share: (micros - activeBefore[index]!.micros) / (result.seconds * 1e6),
    }))
    .sort((a, b) => b.share - a.share);
  return {
    system: system.name,
    requestsPerSecond: requests / result.seconds,
    p50Ms: percentile(result.latenciesMs, 0.5),
    p99Ms: percentile(result.latenciesMs, 0.99),
    cpu: Object.fromEntries(Object.keys(before).map((name) => [name, ((after[name] ?? 0) - before[name]!) / requests])),
    busiest: busiest as Round['busiest'],
    ...(drained && { drained }),
    pssMb,
    failures: [...result.failures, ...(drained?.failures ?? [])].map((failure) => `${system.name}: ${failure}`),
  };
}

const activeTimes = ({ pids }: System): { process: string; micros: number }[] =>
  Object.entries(pids).flatMap(([process, ofProcess]) => ofProcess.map((pid) => ({ process, micros: activeOf(pid) })));
