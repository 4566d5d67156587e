import { address, addresses, integer, path, type ConfigOf, type Declaration } from '../core/config.ts';
import { HOUR_MS } from '../core/clock.ts';
import { PROCESSES, settingOf, type ProcessName } from '../core/processes.ts';
import type { EventBus, Topic } from '../events/bus.ts';
import type { Denials } from '../events/denials.ts';
import type { Job } from '../jobs/jobs.ts';
import type { BoundService, ServiceClient, ServiceDefinition } from '../rpc/call.ts';
import type { Collection, PlatformStore, Store } from '../store/store.ts';
import { engineConfig, type EngineConfig } from './backends.ts';
import { commonConfig, type CommonConfig, type ProcessStart } from './process.ts';

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
  /** For what the service consumes, or publishes by itself; its outbox is relayed for it. */
  bus: EventBus;
  /** For a denial that is no error of a handler: those are counted by themselves. */
  denials: Denials;
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
  /** Every topic that it publishes to. */
  publishes: readonly Topic[];
  /** `own`: it has no outbox in the document store, relays its events by itself and denies nothing. */
  outbox?: 'own';
  openDeps(start: Start<ConfigOf<D>>): Promise<Deps>;
  services(deps: Deps): readonly BoundService[];
  /** Jobs of its own. */
  jobs(deps: Deps): readonly Job[];
  /** Before the server drains: ends work that would outlast it. */
  interrupt?(deps: Deps): Promise<void>;
  /** After the server drained and the jobs stopped: closes what openDeps opened beyond store, bus and clients. */
  close?(deps: Deps): Promise<void>;
}

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
    description: 'Lease of a job: how long the work of a dead replica waits for another one.',
  }),
  EVENTS_FILE: path({ default: '', description: 'File of the embedded event log; empty: events.db in DATA_DIR.' }),
  RELAY_INTERVAL_MS: integer({
    default: 1_000,
    min: 10,
    max: HOUR_MS,
    description:
      'Pause between two rounds of the relay that publishes waiting events; a new event starts a round at once.',
  }),
  DENIALS_INTERVAL_MS: integer({
    default: 60_000,
    min: 50,
    max: HOUR_MS,
    description: 'How long denied requests are counted in memory before they go to the audit trail.',
  }),
  ...engineConfig,
});
export type ServiceConfig = CommonConfig &
  EngineConfig & { LEASE_MS: number; EVENTS_FILE: string; RELAY_INTERVAL_MS: number; DENIALS_INTERVAL_MS: number };

/** Every setting of a service: those that all have, the addresses of those that it calls, its own. */
export const declarationOf = <D extends Declaration>({
  name,
  config,
  calls,
}: Pick<Program<D, never>, 'name' | 'config' | 'calls'>) => ({
  ...serviceConfig(name),
  ...Object.fromEntries(
    calls.map((called) => [
      settingOf(called, 'ADDRESS'),
      addresses({
        default: PROCESSES[called],
        description: `host:port of the ${called} service; several replicas with commas between them.`,
      }),
    ]),
  ),
  ...config,
});
