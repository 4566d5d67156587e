import { counter, gauge, histogram, reading, type Metrics } from 'platform/telemetry/metrics.ts';
import type { Runtimes } from '../runtimes/runtimes.ts';
import type { Releases } from './releases.ts';
import type { ExecutionRecord } from './store.ts';

const RUNS = counter(
  'agentmemory_runs_total',
  'Runs that have ended, by how; those that the reaper ended after a crash have the runtime "unknown".',
  ['runtime', 'outcome'],
);
const RUN_SECONDS = histogram(
  'agentmemory_run_seconds',
  'How long a run took from its start, its wait not included.',
  ['runtime'],
  [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
);
const IN_FLIGHT = gauge('agentmemory_runs_in_flight', 'Runs that this replica performs, those that wait included.', [
  'runtime',
]);
const WAITING = gauge('agentmemory_runs_waiting', 'Runs of this replica that wait for their turn.', ['place']);
const RUNNERS = gauge('agentmemory_runners', 'Processes that evaluate agents: busy with a run, or idle.', ['state']);
const RUNNERS_STARTED = counter('agentmemory_runners_started_total', 'Processes that were started to evaluate agents.');
const RUNNERS_REPLACED = counter(
  'agentmemory_runners_replaced_total',
  'Processes that evaluate agents and were replaced because they had served long enough or had grown.',
);
const RELEASES = gauge(
  'agentmemory_releases_outstanding',
  'Reservations of credits that could not be released yet, and are tried again.',
);

export const RUN_METRICS = [
  ...[RUNS, RUN_SECONDS, IN_FLIGHT, WAITING, RUNNERS, RUNNERS_STARTED, RUNNERS_REPLACED, RELEASES],
] as const;

/** What this replica performs at present, and how it ended. */
export interface CountedRuns {
  /** @returns what is told when the run leaves this replica, with its record if it has ended here */
  begin(runtime: string): (ended?: ExecutionRecord) => void;
  /** Of a run whose process died. */
  interrupted(): void;
}

export function countRuns(
  metrics: Metrics,
  {
    runtimes,
    releases,
  }: { runtimes: Pick<Runtimes, 'byType' | 'queues' | 'runners'>; releases: Pick<Releases, 'outstanding'> },
): CountedRuns {
  const inFlight = new Map(Object.keys(runtimes.byType).map((runtime) => [runtime, 0]));
  metrics.read(() => {
    const { busy, idle, started, replaced } = runtimes.runners;
    return [
      ...Array.from(inFlight, ([runtime, value]) => reading(IN_FLIGHT, { runtime }, value)),
      ...Object.entries(runtimes.queues).map(([place, value]) => reading(WAITING, { place }, value)),
      ...Object.entries({ busy, idle }).map(([state, value]) => reading(RUNNERS, { state }, value)),
      reading(RUNNERS_STARTED, {}, started),
      reading(RUNNERS_REPLACED, {}, replaced),
      reading(RELEASES, {}, releases.outstanding),
    ];
  });
  return {
    begin(runtime) {
      inFlight.set(runtime, inFlight.get(runtime)! + 1);
      return (ended) => {
        inFlight.set(runtime, inFlight.get(runtime)! - 1);
        if (!ended) return;
        metrics.add(RUNS, { runtime, outcome: ended.status });
        if (ended.startedAt !== null && ended.finishedAt !== null)
          metrics.observe(
            RUN_SECONDS,
            { runtime },
            Math.max(0, Date.parse(ended.finishedAt) - Date.parse(ended.startedAt)) / 1e3,
          );
      };
    },
    interrupted: () => metrics.add(RUNS, { runtime: 'unknown', outcome: 'interrupted' }),
  };
}
