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
import { FENCES, openFences, type Fences } from './types/fences.ts';
import { OBJECTS, openMemoryObjects, type MemoryObjects } from './objects/store.ts';
import { TYPES, openMemoryTypes, type MemoryTypes } from './types/store.ts';
import { USAGE, openUsage, type Usage } from './usage/store.ts';

export interface Deps {
  types: MemoryTypes;
  objects: MemoryObjects;
  fences: Fences;
  usage: Usage;
  counterShards: CounterShards;
  mutex: KeyedMutex;
  /** Runs what may take long: compiling schemas and validating contents. */
  schedule: FairScheduler;
  denials: Denials;
  clock: Clock;
  config: Config;
  platformStore: PlatformStore;
  bus: EventBus;
  log: Log;
}

export async function openDeps({ config, clock, log, instanceId, openStore, openBus }: Start<Config>): Promise<Deps> {
  const { store, platformStore, counterShards: shardCount } = await openStore([TYPES, OBJECTS, FENCES, USAGE]);
  const counterShards = await openCounterShards(
    { counterShards: shardCount, platformStore },
    { owner: instanceId, leaseMs: config.LEASE_MS, log },
  );
  return {
    types: openMemoryTypes(store, shardCount),
    objects: openMemoryObjects(store),
    fences: openFences(store),
    usage: openUsage(store, shardCount),
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
