import type { Declaration, ConfigOf } from './config.ts';
import type { Clock } from './clock.ts';
import type { EventBus } from './events/bus.ts';
import type { Handlers, ServiceClient, ServiceDefinition } from './call.ts';
import type { Job } from './jobs.ts';
import type { Log } from './log.ts';
import type { Collection, Document, OpenStore } from './store/store.ts';

/** What every service gets at its start. */
export interface Start<C> {
  config: C;
  log: Log;
  clock: Clock;
  /** Unique per process: owner of leases. */
  instanceId: string;
  /** Opens the document store of this service with its collections (the outbox and the leases come along). */
  openStore(collections: readonly Collection<never>[]): Promise<OpenStore>;
  openBus(): Promise<EventBus>;
  /** Client of another service, by its name; its address comes from `<NAME>_ADDRESS`. */
  connect<D extends ServiceDefinition>(definition: D, audience: string): ServiceClient<D>;
}

export interface Served<D extends ServiceDefinition = ServiceDefinition> {
  definition: D;
  handlers: Handlers<D>;
}

/** A service: config -> deps -> handlers and jobs. `run` does the rest, alike for all of them. */
export interface Program<D extends Declaration, Deps> {
  name: string;
  config: D;
  openDeps(start: Start<ConfigOf<D>>): Promise<Deps>;
  services(deps: Deps): readonly Served[];
  jobs(deps: Deps): readonly Job[];
  /** Closes what openDeps opened beyond store, bus and clients. */
  close?(deps: Deps): Promise<void>;
}
