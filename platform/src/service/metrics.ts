import { statfs } from 'node:fs/promises';
import { parseJson } from '../core/parse-json.ts';
import { machineClock } from '../core/clock.ts';
import { withTimeout } from '../core/with-timeout.ts';
import type { CloudEvent, EventBus } from '../events/bus.ts';
import { OUTBOX } from '../events/outbox.ts';
import type { JobRunnerOptions } from '../jobs/jobs.ts';
import type { Connection } from '../rpc/client.ts';
import type { Identity } from '../rpc/identity.ts';
import type { OnCall } from '../rpc/interceptors/tell-calls.ts';
import type { OpenStore } from '../store/store.ts';
import { CALL_BUCKETS, counter, gauge, histogram, reading, type Metrics, type Reading } from '../telemetry/metrics.ts';

const CALLS = counter(
  'agentmemory_rpc_calls_total',
  'Calls that this process has answered, by their outcome: ok, or the code of the reason.',
  ['service', 'method', 'code'],
);
const CALL_SECONDS = histogram(
  'agentmemory_rpc_call_seconds',
  'How long this process took to answer a call, of a streaming one until its last reply was sent.',
  ['service', 'method'],
  CALL_BUCKETS,
);
const CALLS_IN_FLIGHT = gauge('agentmemory_rpc_calls_in_flight', 'Calls that this process has not answered yet.', [
  'kind',
]);
const CLIENT_STREAMS = gauge(
  'agentmemory_client_streams',
  'Streams to replicas of another service that are open; 0: it cannot be reached.',
  ['service'],
);
const CLIENT_CALLS = gauge(
  'agentmemory_client_calls_in_flight',
  'Calls of another service that wait for its answer, of those on streams.',
  ['service'],
);
const ROUNDS = counter('agentmemory_job_rounds_total', 'Rounds of a job that this replica has run.', [
  'job',
  'outcome',
]);
const ITEMS = counter('agentmemory_job_items_total', 'What the rounds of a job have processed on this replica.', [
  'job',
]);
const JOB_SECONDS = counter('agentmemory_job_seconds_total', 'How long the rounds of a job took together.', ['job']);
const JOB_SUCCEEDED = gauge(
  'agentmemory_job_last_success_timestamp_seconds',
  'When this replica last ended a round of the job well, in seconds since 1970.',
  ['job'],
);
const EVENTS = counter('agentmemory_events_published_total', 'Events that the bus has accepted from this process.', [
  'topic',
]);
const ENGINE_UP = gauge('agentmemory_engine_up', 'Whether the engine has answered this scrape: 1 or 0.', [
  'role',
  'engine',
]);
const ENGINE_ANSWERED = gauge(
  'agentmemory_engine_last_success_timestamp_seconds',
  'When the engine last answered a scrape, in seconds since 1970.',
  ['role', 'engine'],
);
export const OUTBOX_ROWS = gauge(
  'agentmemory_outbox_rows',
  'Events that wait to be published, of which at most 10,000 are counted. All replicas of a service tell the same.',
);
export const OUTBOX_AGE = gauge(
  'agentmemory_outbox_age_seconds',
  'For how long the oldest event has waited to be published; 0: none waits.',
);
export const CERTIFICATE_ENDS = gauge(
  'agentmemory_certificate_expiry_timestamp_seconds',
  'When a certificate of this process ends, in seconds since 1970: its own, or the one that clients see.',
  ['certificate'],
);
const DISK_FREE = gauge(
  'agentmemory_data_disk_free_bytes',
  'Room that is left where the embedded engine has its files; missing with servers.',
);
const DISK_BYTES = gauge(
  'agentmemory_data_disk_bytes',
  'The size of the file system where the embedded engine has its files.',
);

/** Those that the gateway has, too. */
export const PEER_METRICS = [CLIENT_STREAMS, CLIENT_CALLS, ENGINE_UP, ENGINE_ANSWERED, CERTIFICATE_ENDS] as const;
export const SERVICE_METRICS = [
  ...[CALLS, CALL_SECONDS, CALLS_IN_FLIGHT, ...PEER_METRICS, ROUNDS, ITEMS, JOB_SECONDS, JOB_SUCCEEDED],
  ...[EVENTS, OUTBOX_ROWS, OUTBOX_AGE, DISK_FREE, DISK_BYTES],
] as const;

/** More rows are counted no further: whether a million or ten thousand wait makes no difference to who is called. */
export const MOST_ROWS = 10_000;
/** An engine that takes longer counts as down. Less than what a scrape waits for a reader. */
const ENGINE_MS = 2_000;

/** Undefined when metrics are off: a call then costs nothing more. */
export function countCalls(metrics: Metrics): OnCall | undefined {
  if (!metrics.isOn) return undefined;
  const inFlight = { unary: 0, streaming: 0 };
  metrics.read(() => Object.entries(inFlight).map(([kind, value]) => reading(CALLS_IN_FLIGHT, { kind }, value)));
  return ({ path, send }) => {
    const startedAt = performance.now();
    const kind = send ? 'streaming' : 'unary';
    const [, service, method] = path.split('/') as [string, string, string];
    inFlight[kind] += 1;
    return (code) => {
      inFlight[kind] -= 1;
      metrics.add(CALLS, { service, method, code });
      metrics.observe(CALL_SECONDS, { service, method }, (performance.now() - startedAt) / 1e3);
    };
  };
}

export function countRounds(metrics: Metrics): Pick<JobRunnerOptions, 'onRound'> {
  if (!metrics.isOn) return {};
  const succeeded = new Map<string, number>();
  metrics.read(() => Array.from(succeeded, ([job, seconds]) => reading(JOB_SUCCEEDED, { job }, seconds)));
  return {
    onRound(job, outcome, count, tookMs) {
      metrics.add(ROUNDS, { job, outcome });
      metrics.add(ITEMS, { job }, count);
      metrics.add(JOB_SECONDS, { job }, tookMs / 1e3);
      if (outcome === 'succeeded') succeeded.set(job, machineClock.now() / 1e3);
    },
  };
}

/** The bus, of which it counts what was accepted. */
export const countEvents = (metrics: Metrics, bus: EventBus): EventBus =>
  metrics.isOn
    ? {
        ...bus,
        async publish(topic, events) {
          await bus.publish(topic, events);
          metrics.add(EVENTS, { topic }, events.length);
        },
      }
    : bus;

export function readConnections(metrics: Metrics, service: string, { load }: Connection): void {
  if (load)
    metrics.read(() => {
      const { streams, calls } = load();
      return [reading(CLIENT_STREAMS, { service }, streams), reading(CLIENT_CALLS, { service }, calls)];
    });
}

/** @param look rejects when the engine does not answer */
export function readEngine(metrics: Metrics, role: string, engine: string, look: () => Promise<unknown>): void {
  let answeredAt: number | undefined;
  metrics.read(async () => {
    const up = await withTimeout(look(), ENGINE_MS).then(
      () => 1,
      () => 0,
    );
    if (up === 1) answeredAt = machineClock.now() / 1e3;
    const answered = answeredAt === undefined ? [] : [reading(ENGINE_ANSWERED, { role, engine }, answeredAt)];
    return [reading(ENGINE_UP, { role, engine }, up), ...answered];
  });
}

interface Parts {
  identity: Pick<Identity, 'endsAt'>;
  store: Pick<OpenStore, 'platformStore' | 'exclusive'>;
  bus: Pick<EventBus, 'check'>;
  engines: { store: string; bus: string };
  /** False for a service whose events wait elsewhere. */
  hasOutbox: boolean;
  /** Of the files of embedded engines. */
  folder: string;
}

/** What every service looks at when it is scraped. */
export function readEngines(metrics: Metrics, { identity, store, bus, engines, hasOutbox, folder }: Parts): void {
  const { platformStore, exclusive } = store;
  metrics.read(() => [reading(CERTIFICATE_ENDS, { certificate: 'own' }, identity.endsAt() / 1e3)]);
  readEngine(metrics, 'store', engines.store, () =>
    Promise.all([platformStore.now(), platformStore.find(OUTBOX, {}, { limit: 1 })]),
  );
  readEngine(metrics, 'bus', engines.bus, () => bus.check());
  if (exclusive)
    metrics.read(async () => {
      const { bavail, blocks, bsize } = await statfs(folder);
      return [reading(DISK_FREE, {}, bavail * bsize), reading(DISK_BYTES, {}, blocks * bsize)];
    });
  if (hasOutbox)
    metrics.read(async () => {
      const [[oldest], rows] = await Promise.all([
        platformStore.find(OUTBOX, {}, { limit: 1 }),
        platformStore.count(OUTBOX, {}, { limit: MOST_ROWS }),
      ]);
      return waiting(rows, oldest && Date.parse((parseJson(oldest.event) as CloudEvent).time));
    });
}

/** @param oldestMs since when the oldest waits, in milliseconds since the epoch */
export const waiting = (rows: number, oldestMs: number | undefined): Reading[] => [
  reading(OUTBOX_ROWS, {}, rows),
  reading(OUTBOX_AGE, {}, oldestMs === undefined ? 0 : Math.max(0, machineClock.now() - oldestMs) / 1e3),
];
