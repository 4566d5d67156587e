import type { Clock } from 'platform/core/clock.ts';
import { keyedMutex, type KeyedMutex } from 'platform/core/keyed-mutex.ts';
import { openBackground, type Background } from 'platform/jobs/background.ts';
import { openCounterShards, type CounterShards } from 'platform/jobs/counter-shards.ts';
import { fairScheduler, type FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { makeSchemaCache, type SchemaCache } from 'platform/json-schema/cache.ts';
import type { Start } from 'platform/service/program.ts';
import type { PlatformStore } from 'platform/store/store.ts';
import type { Config } from './config.ts';
import { openTypeChanges, TYPE_CHANGES, type TypeChanges } from './changes/store.ts';
import { FENCES, openFences, type Fences } from './types/fences.ts';
import { openReferences, REFERENCES, type References } from './references/store.ts';
import { OBJECTS, openMemoryObjects, type MemoryObjects } from './objects/store.ts';
import { openGroupedWrites, type GroupedWrites } from './objects/grouped-writes.ts';
import { TYPES, openMemoryTypes, type MemoryTypes } from './types/store.ts';
import { USAGE, openUsage, type Usage } from './usage/store.ts';

export interface Deps {
  types: MemoryTypes;
  objects: MemoryObjects;
  groupedWrites: GroupedWrites;
  references: References;
  fences: Fences;
  usage: Usage;
  changes: TypeChanges;
  counterShards: CounterShards;
  platformStore: PlatformStore;
  /** The store's time, in milliseconds since 1970: leases use no other clock. */
  storeNow: () => Promise<number>;
  mutex: KeyedMutex;
  background: Background;
  /** Runs what may take long: compiling schemas and validating contents. */
  schedule: FairScheduler;
  schemas: SchemaCache;
  clock: Clock;
  config: Start<Config>['config'];
  /** Of this process. */
  instanceId: string;
  log: Log;
}

/** All that it stores. */
export const COLLECTIONS = [TYPES, OBJECTS, FENCES, USAGE, TYPE_CHANGES, REFERENCES];

export async function openDeps({ config, clock, log, instanceId, openStore }: Start<Config>): Promise<Deps> {
  const { store, platformStore, counterShards: shardCount } = await openStore(COLLECTIONS);
  const counterShards = await openCounterShards(
    { counterShards: shardCount, platformStore },
    { owner: instanceId, leaseMs: config.LEASE_MS, log },
  );
  const objects = openMemoryObjects(store);
  const fences = openFences(store);
  const usage = openUsage(store, shardCount);
  return {
    types: openMemoryTypes(store, shardCount),
    objects,
    groupedWrites: openGroupedWrites({ objects, fences, usage, counterShards }),
    references: openReferences(store),
    fences,
    usage,
    changes: openTypeChanges(store),
    counterShards,
    platformStore,
    storeNow: () => platformStore.now(),
    mutex: keyedMutex(),
    background: openBackground(),
    schedule: fairScheduler(),
    schemas: makeSchemaCache(config.MEMORY_SCHEMA_CACHE_BYTES),
    clock,
    config,
    instanceId,
    log,
  };
}
