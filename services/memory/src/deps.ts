import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import { fairScheduler, type FairScheduler } from './fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import type { Start } from 'platform/service/program.ts';
import { openCounterShards, type CounterShards } from './counter-shards.ts';
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
  clock: Clock;
  config: Config;
  log: Log;
}

export async function openDeps({ config, clock, log, instanceId, openStore }: Start<Config>): Promise<Deps> {
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
    clock,
    config,
    log,
  };
}
