import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import type { EventBus } from 'platform/events/bus.ts';
import { fairScheduler, type FairScheduler } from './fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { makeDenials, type Denials } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/run.ts';
import { openCounterShards, type CounterShards } from './counter-shards.ts';
import type { PlatformStore } from 'platform/store/store.ts';
import type { Config } from './config.ts';
import { FENCES, fenceStore, type FenceStore } from './types/fences.ts';
import { OBJECTS, objectStore, type ObjectStore } from './objects/store.ts';
import { TYPES, typeStore, type TypeStore } from './types/store.ts';
import { USAGE, usageStore, type UsageStore } from './usage/store.ts';

export interface Deps {
  types: TypeStore;
  objects: ObjectStore;
  fences: FenceStore;
  usage: UsageStore;
  counterShards: CounterShards;
  mutex: KeyedMutex;
  /** For what a schema or a content may make long. */
  schedule: FairScheduler;
  denials: Denials;
  clock: Clock;
  config: Config;
  platformStore: PlatformStore;
  bus: EventBus;
  log: Log;
}

export async function openDeps({ config, clock, log, instanceId, openStore, openBus }: Start<Config>): Promise<Deps> {
  const { store, platformStore, counterShards: rows } = await openStore([TYPES, OBJECTS, FENCES, USAGE]);
  const counterShards = await openCounterShards(
    { counterShards: rows, platformStore },
    { owner: instanceId, leaseMs: config.LEASE_MS, log },
  );
  return {
    types: typeStore(store, counterShards.rows),
    objects: objectStore(store),
    fences: fenceStore(store),
    usage: usageStore(store, counterShards.rows),
    counterShards,
    mutex: keyedMutex(),
    schedule: fairScheduler(),
    denials: makeDenials(),
    clock,
    config,
    log,
    platformStore,
    bus: await openBus(['memory.change.v1', 'audit.v1']),
  };
}
