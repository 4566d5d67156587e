import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { join } from 'node:path';
import type { ServiceClient, ServiceDefinition } from '../rpc/call.ts';
import { clientOf, openConnection, type Connection } from '../rpc/client.ts';
import { followTime } from '../core/clock.ts';
import { address, addresses, integer, path, type ConfigOf, type Declaration, type Env } from '../core/config.ts';
import { engineConfig, openBusEngine, openStoreEngine, type EngineConfig } from './backends.ts';
import type { EventBus, Topic } from '../events/bus.ts';
import { OUTBOX } from '../events/outbox.ts';
import { ServiceError } from '../core/errors.ts';
import { openIdentity } from '../rpc/identity.ts';
import { startJobs, type Job, type JobRunner } from '../jobs/jobs.ts';
import { listJobs, runJob } from '../jobs/job-service.ts';
import { clearLeases, LEASES } from '../jobs/lease.ts';
import type { Log } from '../core/log.ts';
import { commonConfig, runProcess, type CommonConfig, type ProcessStart, type Running } from './process.ts';
import { PROCESSES, settingOf, type ProcessName } from '../core/processes.ts';
import { served, startServer, type Served } from '../rpc/server.ts';
import { StartError } from '../core/start-error.ts';
import type { Collection, Op, OpenStore, PlatformStore, Store } from '../store/store.ts';

const serviceConfig = (name: ProcessName) => ({
  ...commonConfig(name),
  [settingOf(name, 'LISTEN')]: address({
    default: PROCESSES[name],
    description: 'host:port that this service listens on.',
  }),
  LEASE_MS: integer({
    default: 15_000,
    min: 1_000,
    max: 300_000,
    description: 'Lease of a job: how long a dead replica holds its work up.',
  }),
  EVENTS_FILE: path({ default: '', description: 'File of the embedded event log; empty: events.db in DATA_DIR.' }),
  ...engineConfig,
});
type ServiceConfig = CommonConfig & EngineConfig & { LEASE_MS: number; EVENTS_FILE: string };

/** The document store as a service uses it. */
export interface ServiceStore {
  store: Store;
  platformStore: PlatformStore;
  /** Rows over which a contended counter is best spread on this engine. */
  readonly counterShards: number;
}

/** What every service gets at its start. */
export interface Start<C> extends ProcessStart<C & ServiceConfig> {
  /** Opens the document store of this service; the outbox and the leases come along. */
  openStore(collections: readonly Collection<never>[]): Promise<ServiceStore>;
  /** The file of the store, for an engine that keeps more in it. */
  storeFile: string;
  /** @param publishes all that this service publishes */
  openBus(publishes: readonly Topic[]): Promise<EventBus>;
  /** Client of another service (one of `calls`); its address comes from `<NAME>_ADDRESS`. */
  connect<D extends ServiceDefinition>(definition: D, audience: ProcessName): ServiceClient<D>;
}

/** A service: config -> deps -> handlers and jobs. `run` does the rest, alike for all of them. */
export interface Program<D extends Declaration, Deps> {
  name: ProcessName;
  /** Settings of its own. */
  config: D;
  /** Services that it calls. */
  calls: readonly ProcessName[];
  openDeps(start: Start<ConfigOf<D>>): Promise<Deps>;
  services(deps: Deps): readonly Served[];
  jobs(deps: Deps): readonly Job[];
  /** Before the server drains: ends work that would outlast it. */
  interrupt?(deps: Deps): Promise<void>;
  /** After the server drained and the jobs stopped: closes what openDeps opened beyond store, bus and clients. */
  close?(deps: Deps): Promise<void>;
}

export const declarationOf = <D extends Declaration>(
  program: Pick<Program<D, never>, 'name' | 'config' | 'calls'>,
) => ({
  ...serviceConfig(program.name),
  ...Object.fromEntries(
    program.calls.map((name) => [
      settingOf(name, 'ADDRESS'),
      addresses({
        default: PROCESSES[name],
        description: `host:port of the ${name} service; several replicas with commas between them.`,
      }),
    ]),
  ),
  ...program.config,
});

export const run = <D extends Declaration, Deps>(
  program: Program<D, Deps>,
  env: Env,
  argv: readonly string[],
): Promise<void> =>
  runProcess(
    {
      name: program.name,
      declaration: declarationOf(program),
      start: (start) => startService(program, start as never),
    },
    env,
    argv.slice(2),
  );

/** Everything that a service opens, in order; `stop` closes it in the opposite one. */
export async function startService<D extends Declaration, Deps>(
  program: Program<D, Deps>,
  start: ProcessStart<ConfigOf<D> & ServiceConfig>,
): Promise<Running> {
  const { config, log, instanceId } = start;
  const settings = config as Record<string, unknown> & ServiceConfig;
  const identity = openIdentity({ name: program.name, keyFile: settings.KEY_FILE, peersFile: settings.PEERS_FILE });
  const opening = { settings, service: program.name, log };
  const storeFile = join(settings.DATA_DIR, `${program.name}.db`);
  const connections: Connection[] = [];
  const opened: { store?: OpenStore; bus?: EventBus; runner?: JobRunner } = {};
  const ownJobs: Job[] = [];

  const deps = await program
    .openDeps({
      ...start,
      storeFile,
      async openStore(collections) {
        const store = (opened.store = await openStoreEngine(opening, storeFile, [...collections, OUTBOX, LEASES]));
        if (store.exclusive) await clearLeases(store.platformStore);
        else ownJobs.push(await following(store, log));
        if (collections.some(({ version }) => version > 1)) ownJobs.push(migration(store));
        return { ...pokingRelay(store, () => opened.runner?.poke('relay')), counterShards: store.counterShards };
      },
      async openBus(publishes) {
        return (opened.bus = await openBusEngine(
          opening,
          settings.EVENTS_FILE || join(settings.DATA_DIR, 'events.db'),
          publishes,
        ));
      },
      connect(definition, audience) {
        const connection = openConnection({
          address: String(settings[settingOf(audience, 'ADDRESS')]),
          audience,
          identity,
        });
        connections.push(connection);
        return clientOf(definition, connection.call);
      },
    })
    .catch(refuseStart);
  const { store } = opened;
  if (!store) throw new Error(`${program.name} opened no store`);
  const runner = (opened.runner = startJobs([...program.jobs(deps), ...ownJobs], {
    platformStore: store.platformStore,
    owner: instanceId,
    leaseMs: settings.LEASE_MS,
    log,
  }));
  const jobService = served(JobServiceService, {
    listJobs: () => listJobs(runner),
    runJob: (request) => runJob(runner, request),
  });
  const server = await startServer({
    listen: String(settings[settingOf(program.name, 'LISTEN')]),
    identity,
    log,
    services: [...program.services(deps), jobService],
  });

  return {
    address: server.address,
    async stop() {
      await program.interrupt?.(deps);
      await server.drain(settings.DRAIN_MS);
      await runner.stop();
      await program.close?.(deps);
      for (const connection of connections) connection.close();
      await opened.bus?.close();
      await store.close();
    },
  };
}

/** An engine that fails when it has been reached says so as it does to callers. @throws StartError for that */
function refuseStart(error: unknown): never {
  if (!(error instanceof ServiceError)) throw error;
  const why = error.cause instanceof Error ? ` (${error.cause.message.split('\n', 1)[0]})` : '';
  throw new StartError(`${error.message}${why}`, { cause: error });
}

/** At the start, and again since clocks drift and are set. A clock that is too far off is logged by the round, which fails. */
async function following({ platformStore }: OpenStore, log: Log): Promise<Job> {
  const run = async (): Promise<number> => {
    const aheadMs = await followTime(() => platformStore.now());
    if (aheadMs === undefined) return 0;
    log.warn({ aheadMs }, "this machine's clock is not the store's, whose time is used");
    return 1;
  };
  await run();
  return { name: 'clock', description: "Goes by the store's time.", intervalMs: 30_000, everyReplica: true, run };
}

/** At the start, and again while older replicas may write. */
const migration = ({ migrate }: OpenStore): Job => ({
  name: 'migrate',
  description: 'Writes documents of an older shape in the present one.',
  intervalMs: 60_000,
  run: migrate,
});

/** A batch that wrote an outbox entry wakes the relay, so that events leave at once and the interval is only a net. */
function pokingRelay(opened: OpenStore, poke: () => void): Pick<ServiceStore, 'store' | 'platformStore'> {
  const wrote = (ops: readonly Op[]): void => {
    if (ops.some((op) => op.kind === 'insert' && op.collection.name === OUTBOX.name)) poke();
  };
  return {
    store: {
      ...opened.store,
      apply: (organizationId, ops) => opened.store.apply(organizationId, ops).then(() => wrote(ops)),
    },
    platformStore: { ...opened.platformStore, apply: (ops) => opened.platformStore.apply(ops).then(() => wrote(ops)) },
  };
}
