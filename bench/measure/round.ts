import { setTimeout as delay } from 'node:timers/promises';
import { after, countOf, runClosedLoop, type LoadResult } from '../load/closed-loop.ts';
import { percentile } from '../load/latencies.ts';
import type { Scenario } from '../load/scenarios.ts';
import { whenSteady } from '../load/warm-up.ts';
import type { Settings } from '../settings.ts';
import { targetOf, type System } from '../systems/system.ts';
import { drain, untilDrained, type Drained } from './drain.ts';
import { mainThreadOf, type ThreadTimes } from './processes.ts';

/** What one round of load on one system showed. */
export interface Round {
  system: string;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU microseconds of each process per request, until the backlog has drained. */
  cpu: Record<string, number>;
  /** Of our processes, the one whose main thread slept least while requests arrived; shares of that time (0 to 1). */
  busiest: { process: string; ran: number; waitedForCore: number };
  /** After the requests; for a system with events. */
  drained?: Drained;
  /** Of all processes, when the last request was answered. */
  pssMb: number;
  /** Requests that failed, and records that are too many or too few. */
  failures: string[];
}

/** The share of the time in which a main thread had something to do. */
export const activeShare = ({ ran, waitedForCore }: Omit<Round['busiest'], 'process'>): number => ran + waitedForCore;

export const totalCpu = ({ cpu }: Round): number => Object.values(cpu).reduce((sum, micros) => sum + micros, 0);

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
  const threadsBefore = mainThreads(system);
  const result = await run();
  const threads = mainThreads(system);
  const pssMb = system.pssMb();
  const drained = records && counts && (await drain(records, counts, result.succeeded));
  const cpuAfter = system.cpu();
  const requests = countOf(result);
  const shareOf = (micros: number): number => micros / (result.seconds * 1e6);
  const [busiest] = threads
    .map(({ process, ran, waited }, index) => ({
      process,
      ran: shareOf(ran - threadsBefore[index]!.ran),
      waitedForCore: shareOf(waited - threadsBefore[index]!.waited),
    }))
    .sort((a, b) => activeShare(b) - activeShare(a));
  return {
    system: system.name,
    requestsPerSecond: requests / result.seconds,
    p50Ms: percentile(result.latenciesMs, 0.5),
    p99Ms: percentile(result.latenciesMs, 0.99),
    cpu: Object.fromEntries(
      Object.entries(usedCpu(before, cpuAfter)).map(([name, micros]) => [name, micros / requests]),
    ),
    busiest: busiest as Round['busiest'],
    ...(drained && { drained }),
    pssMb,
    failures: [...result.failures, ...(drained?.failures ?? [])].map((failure) => `${system.name}: ${failure}`),
  };
}

type Micros = Readonly<Record<string, number>>;

/** What each process has used between two readings, in CPU microseconds. */
const usedCpu = (before: Micros, later: Micros): Record<string, number> =>
  Object.fromEntries(Object.keys(before).map((name) => [name, (later[name] ?? 0) - before[name]!]));

/** CPU microseconds that each process takes in a second without requests. */
export async function idleCpuOf(system: System, seconds: number): Promise<Record<string, number>> {
  const [before, since] = [system.cpu(), performance.now()];
  await delay(seconds * 1000);
  const [later, elapsed] = [system.cpu(), (performance.now() - since) / 1000];
  return Object.fromEntries(Object.entries(usedCpu(before, later)).map(([name, micros]) => [name, micros / elapsed]));
}

const mainThreads = ({ pids }: System): (ThreadTimes & { process: string })[] =>
  Object.entries(pids).flatMap(([process, ofProcess]) => ofProcess.map((pid) => ({ process, ...mainThreadOf(pid) })));
