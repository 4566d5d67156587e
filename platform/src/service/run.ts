import { join } from 'node:path';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { followTime, isoTime } from '../core/clock.ts';
import type { ConfigOf, Declaration, Env } from '../core/config.ts';
import { ServiceError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { settingOf } from '../core/processes.ts';
import { StartError } from '../core/start-error.ts';
import { withTimeout } from '../core/with-timeout.ts';
import { denialsJob, flushDenials, makeDenials } from '../events/denials.ts';
import type { EventBus } from '../events/bus.ts';
import { OUTBOX } from '../events/outbox.ts';
import { relayJob } from '../events/relay.ts';
import { cutBackLogJob } from '../jobs/cut-back-log.ts';
import { listJobs, runJob } from '../jobs/job-service.ts';
import { startJobs, type Job } from '../jobs/jobs.ts';
import { clearLeases, LEASES } from '../jobs/lease.ts';
import { bind } from '../rpc/call.ts';
import { clientOf, openConnection, type Connection } from '../rpc/client.ts';
import { openIdentity } from '../rpc/identity.ts';
import { startServer } from '../rpc/server.ts';
import type { Op, OpenStore, PlatformStore, Store } from '../store/store.ts';
import { openMetrics } from '../telemetry/metrics.ts';
import { openBusEngine, openStoreEngine, requireServers } from './backends.ts';
import { commonChecks, diagnose } from './diagnose.ts';
import { countCalls, countEvents, countRounds, readConnections, readEngines, SERVICE_METRICS } from './metrics.ts';
import { identityFiles, runProcess, type ProcessStart, type Running } from './process.ts';
import { declarationOf, type DenialsConfig, type Program, type ServiceConfig } from './program.ts';
import { VERIFY_COPY, verifyCopy } from './verify-copy.ts';

/** Runs a service as a process, from its settings to its drain; or looks at a copy of its file, for `admin backup`. */
export async function run<D extends Declaration, Deps>(
  program: Program<D, Deps>,
  env: Env,
  argv: readonly string[],
): Promise<void> {
  const [first, file] = argv.slice(2);
  if (first === VERIFY_COPY && file !== undefined)
    return void process.stdout.write(JSON.stringify(await verifyCopy(file, program.copy)));
  return runProcess(
    {
      name: program.name,
      declaration: declarationOf(program),
      start: (start) => startService(program, start as never),
    },
    env,
    argv.slice(2),
  );
}

/** Opens everything that a service needs, in order; `stop` closes it in reverse order. */
export async function startService<D extends Declaration, Deps>(
  program: Program<D, Deps>,
  start: ProcessStart<ConfigOf<D> & ServiceConfig>,
): Promise<Running> {
  const { config, clock, log, instanceId } = start;
  const settings = config as Record<string, unknown> & ServiceConfig;
  requireServers(settings);
  const identity = openIdentity({ name: program.name, ...identityFiles(program.name, settings), log });
  const opening = { settings, service: program.name, log };
  const storeFile = join(settings.DATA_DIR, `${program.name}.db`);
  const eventsFile = settings.EVENTS_FILE || join(settings.DATA_DIR, 'events.db');
  const connections: Connection[] = [];
  const denials = makeDenials();
  const opened: { store?: OpenStore; bus?: Promise<EventBus>; migrates?: boolean; startRelay?: () => void } = {};
  const openBus = () =>
    (opened.bus ??= openBusEngine(opening, eventsFile, program.publishes).then((bus) => countEvents(metrics, bus)));
  const metrics = await openMetrics(
    program.name,
    String(settings[settingOf(program.name, 'METRICS_LISTEN')]),
    [...SERVICE_METRICS, ...(program.metrics ?? [])],
    log,
  ).catch((error: unknown) => {
    identity.close();
    throw error;
  });

  /** Closes what is open. @throws StartError for an engine that failed */
  async function giveUp(error: unknown): Promise<never> {
    identity.close();
    await metrics.close();
    await opened.bus?.then((bus) => bus.close()).catch(() => undefined);
    await opened.store?.close();
    throw startError(error);
  }

  const deps = await program
    .openDeps({
      ...start,
      storeFile,
      openBus,
      denials,
      metrics,
      relaySoon: () => opened.startRelay?.(),
      async openStore(collections) {
        const store = (opened.store = await openStoreEngine(opening, storeFile, [...collections, OUTBOX, LEASES]));
        if (store.exclusive) await clearLeases(store.platformStore);
        else await adoptStoreTime(store, log);
        opened.migrates = collections.some(({ version }) => version > 1);
        return { ...notifying(store, () => opened.startRelay?.()), counterShards: store.counterShards };
      },
      connect(definition, audience) {
        const address = String(settings[settingOf(audience, 'ADDRESS')]);
        const connection = openConnection({ address, audience, identity });
        connections.push(connection);
        readConnections(metrics, audience, connection);
        return clientOf(definition, connection.call);
      },
    })
    .catch(giveUp);

  const { store } = opened;
  if (!store) throw new Error(`${program.name} opened no store`);
  const bus = await openBus().catch(giveUp);
  const { platformStore } = store;
  const deniesRequests = program.outbox !== 'own';
  const denialDeps = { denials, platformStore, source: `/${program.name}` };
  const relay = relayJob({ platformStore, bus, log, intervalMs: settings.RELAY_INTERVAL_MS });
  const { DENIALS_INTERVAL_MS } = settings as typeof settings & DenialsConfig;
  const outboxJobs = [relay, denialsJob({ ...denialDeps, intervalMs: DENIALS_INTERVAL_MS })];
  const jobs: readonly Job[] = [
    ...program.jobs(deps),
    ...(deniesRequests ? outboxJobs : []),
    ...(store.exclusive ? [] : [clockJob(store, log)]),
    ...(store.cutBackLog ? [cutBackLogJob(store.cutBackLog, log)] : []),
    ...(opened.migrates ? [migrateJob(store)] : []),
  ];
  const runner = startJobs(jobs, {
    platformStore,
    owner: instanceId,
    leaseMs: settings.LEASE_MS,
    log,
    ...countRounds(metrics),
  });
  opened.startRelay = () => runner.runSoon(relay.name);
  const engines = {
    store: settings.MONGODB_URL === '' ? 'SQLite' : 'MongoDB',
    bus: settings.KAFKA_BROKERS === '' ? 'SQLite' : 'Kafka',
  };
  const checks = [
    ...commonChecks({ identity, platformStore, bus, engines }, deniesRequests),
    ...(program.checks?.(deps) ?? []),
  ];
  readEngines(metrics, { identity, store, bus, engines, hasOutbox: deniesRequests, folder: settings.DATA_DIR });
  const server = await startServer({
    listen: String(settings[settingOf(program.name, 'LISTEN')]),
    healthListen: String(settings[settingOf(program.name, 'HEALTH_LISTEN')]),
    identity,
    log,
    services: [
      ...program.services(deps),
      bind(JobServiceService, runner, { listJobs, runJob }),
      bind(DiagnosisServiceService, checks, { diagnose }),
    ],
    onCall: countCalls(metrics),
    onDenied: (denial) => deniesRequests && denials.note({ ...denial, time: isoTime(clock.now()) }),
  });

  const warn = (message: string) => (error: unknown) => log.warn({ error }, message);
  /** What the calls have written for which the drain waited; events that stay are published by another replica. */
  async function publishLast(): Promise<void> {
    if (deniesRequests) await flushDenials(denialDeps).catch(warn('counted denials are not in the audit trail'));
    await withTimeout(runner.runNow(relay.name), PUBLISH_MS).catch(warn('events stay for another replica or start'));
  }

  return {
    address: server.address,
    async stop() {
      const interrupting = setTimeout(() => void program.interrupt?.(deps), interruptAfterMs(settings.DRAIN_MS));
      await server.drain(settings.DRAIN_MS);
      clearTimeout(interrupting);
      await program.interrupt?.(deps);
      await publishLast();
      await withTimeout(runner.stop(), STOP_JOBS_MS).catch(warn('a round of a job did not end'));
      await program.close?.(deps);
      for (const connection of connections) connection.close();
      identity.close();
      await bus.close();
      await store.close();
      await metrics.close();
    },
  };
}

/** What is left of the drain then is enough to store how the interrupted work ended, and to answer. */
const interruptAfterMs = (drainMs: number): number => drainMs - Math.min(2_500, drainMs / 2);

/** Of the last round of the relay, and of the rounds of jobs: an engine that does not answer holds up no stop. */
const [PUBLISH_MS, STOP_JOBS_MS] = [1_000, 5_000];

/** A StartError for an engine that failed at the start, with the message that callers get; any other error as it is. */
function startError(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const why = error.cause instanceof Error ? ` (${error.cause.message.split('\n', 1)[0]})` : '';
  return new StartError(`${error.message}${why}`, { cause: error });
}

/** Resolves to true when it corrected the time of this process. @throws ServiceError when the clocks differ too much */
async function adoptStoreTime({ platformStore }: OpenStore, log: Log): Promise<boolean> {
  const aheadMs = await followTime(() => platformStore.now());
  if (aheadMs === undefined) return false;
  log.warn({ aheadMs }, "this machine's clock differs from the store's, whose time is used");
  return true;
}

/** Repeated, since clocks drift and are set. */
const clockJob = (store: OpenStore, log: Log): Job => ({
  name: 'clock',
  description: "Corrects the time of this process to the store's.",
  intervalMs: 30_000,
  everyReplica: true,
  run: async () => Number(await adoptStoreTime(store, log)),
});

/** Repeated, since replicas of an older release may still write. */
const migrateJob = ({ migrate }: OpenStore): Job => ({
  name: 'migrate',
  description: 'Upgrades stored documents to the current document version.',
  intervalMs: 60_000,
  run: migrate,
});

/**
 * The store, which calls `notify` after a batch that wrote an outbox entry. So the relay starts at once and needs its
 * interval only for what was missed.
 */
function notifying(opened: OpenStore, notify: () => void): { store: Store; platformStore: PlatformStore } {
  const wrote = (ops: readonly Op[]): void => {
    if (ops.some((op) => op.kind === 'insert' && op.collection.name === OUTBOX.name)) notify();
  };
  return {
    store: {
      ...opened.store,
      apply: (organizationId, ops) => opened.store.apply(organizationId, ops).then(() => wrote(ops)),
    },
    platformStore: {
      ...opened.platformStore,
      apply: (ops) => opened.platformStore.apply(ops).then(() => wrote(ops)),
    },
  };
}
