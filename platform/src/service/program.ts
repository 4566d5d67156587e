import { address, addresses, integer, path, type ConfigOf, type Declaration } from '../core/config.ts';
import { HOUR_MS } from '../core/clock.ts';
import { PROCESSES, settingOf, type ProcessName } from '../core/processes.ts';
import type { EventBus, Topic } from '../events/bus.ts';
import type { Denials } from '../events/denials.ts';
import type { Job } from '../jobs/jobs.ts';
import type { BoundService, ServiceClient, ServiceDefinition } from '../rpc/call.ts';
import type { Collection, PlatformStore, Store } from '../store/store.ts';
import { tracesConfig } from '../telemetry/traces-config.ts';
import { engineConfig, type EngineConfig } from './backends.ts';
import { metricsConfig, type Metric, type Metrics } from '../telemetry/metrics.ts';
import type { Check } from './diagnose.ts';
import { commonConfig, type CommonConfig, type ProcessStart } from './process.ts';
import type { CopyChecks } from './verify-copy.ts';

/** The document store as a service uses it. */
export interface ServiceStore {
  store: Store;
  platformStore: PlatformStore;
  /** How many counter shards (rows over which a contended counter is spread) suit this engine. */
  readonly counterShards: number;
}

/** What a service gets to open its dependencies. */
export interface Start<C> extends ProcessStart<C & ServiceConfig> {
  /** Opens the document store of this service; adds the collections of the outbox and the leases. */
  openStore(collections: readonly Collection<never>[]): Promise<ServiceStore>;
  /** SQLite file of the store, for a service that keeps other data in the same file. */
  storeFile: string;
  /** The bus, for subscriptions and for events that bypass the outbox; `run` relays the outbox. */
  openBus(): Promise<EventBus>;
  /** Starts the relay soon, for a service that publishes by a job `relay` of its own; an outbox does so by itself. */
  relaySoon(): void;
  /** For a denial that is not an error of a handler; `run` counts the errors. */
  denials: Denials;
  /** For what `metrics` of the program declares. */
  metrics: Metrics;
  /** Client of another service (one of `calls`), at the address in the setting `<NAME>_ADDRESS`. */
  connect<D extends ServiceDefinition>(definition: D, audience: ProcessName): ServiceClient<D>;
}

/** What a service declares: its settings, dependencies, handlers and jobs. `run` does the rest for every service. */
export interface Program<D extends Declaration, Deps> {
  name: ProcessName;
  /** Its own settings, beside those of every service. */
  config: D;
  /** Services that it calls. */
  calls: readonly ProcessName[];
  /** Every topic that it publishes to. */
  publishes: readonly Topic[];
  /**
   * `own`: the service publishes its events by a job of its own and denies no request. `run` then adds neither the
   * relay nor the job that writes denials.
   */
  outbox?: 'own';
  openDeps(start: Start<ConfigOf<D>>): Promise<Deps>;
  services(deps: Deps): readonly BoundService[];
  /** Its own jobs, beside those of every service. */
  jobs(deps: Deps): readonly Job[];
  /** What `admin doctor` looks at, beside the checks of every service. */
  checks?(deps: Deps): readonly Check[];
  /** What `admin backup` and `admin restore` look at in a copy of its SQLite file. */
  copy?: CopyChecks;
  /** What it tells Prometheus, beside the metrics of every service. */
  metrics?: readonly Metric[];
  /** Ends work that takes longer than the drain. Called shortly before the drain is over, and again after it. */
  interrupt?(deps: Deps): Promise<void>;
  /** Called when server and jobs have stopped; closes what openDeps opened beyond store, bus and clients. */
  close?(deps: Deps): Promise<void>;
}

/** The setting that says where the embedded event bus is. */
export const eventsFile = path({
  default: '',
  description: 'SQLite file of the event bus; empty: events.db in DATA_DIR.',
});

const serviceConfig = (name: ProcessName) => ({
  ...commonConfig(name),
  ...tracesConfig,
  [settingOf(name, 'LISTEN')]: address({
    default: PROCESSES[name],
    description: 'host:port that this service listens on.',
  }),
  [settingOf(name, 'HEALTH_LISTEN')]: address({
    default: '',
    description:
      'host:port at which this service answers grpc.health.v1 without TLS, for probes that have no certificate; ' +
      'empty: nowhere. With TLS it answers at its own address.',
  }),
  ...metricsConfig(name),
  LEASE_MS: integer({
    default: 15_000,
    min: 1_000,
    max: 300_000,
    description: 'How long the lease of a job lasts; then another replica takes over the jobs of a dead one.',
  }),
  EVENTS_FILE: eventsFile,
  RELAY_INTERVAL_MS: integer({
    default: 1_000,
    min: 10,
    max: HOUR_MS,
    description:
      'Pause between two rounds of the relay that publishes waiting events; a new event starts a round at once.',
  }),
  ...engineConfig,
});
/** Of a service that may deny requests. */
const denialsConfig = {
  DENIALS_INTERVAL_MS: integer({
    default: 60_000,
    min: 50,
    max: HOUR_MS,
    description: 'How long denied requests are counted in memory before they go to the audit trail.',
  }),
};
export type ServiceConfig = CommonConfig &
  EngineConfig & { LEASE_MS: number; EVENTS_FILE: string; RELAY_INTERVAL_MS: number };
export type DenialsConfig = ConfigOf<typeof denialsConfig>;

/** Every setting of a service: those of all services, the addresses of the services that it calls, its own. */
export const declarationOf = <D extends Declaration>({
  name,
  config,
  calls,
  outbox,
}: Pick<Program<D, never>, 'name' | 'config' | 'calls' | 'outbox'>) => ({
  ...serviceConfig(name),
  ...(outbox === 'own' ? {} : denialsConfig),
  ...Object.fromEntries(
    calls.map((called) => [
      settingOf(called, 'ADDRESS'),
      addresses({
        default: PROCESSES[called],
        description: `host:port of the ${called} service; several replicas comma-separated.`,
      }),
    ]),
  ),
  ...config,
});
