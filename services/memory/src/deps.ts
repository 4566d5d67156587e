import type { Clock } from 'platform/core/clock.ts';
import { turns } from 'platform/store/retry-on-conflict.ts';
import type { EventBus } from 'platform/events/bus.ts';
import { fairTurns, type Fairly } from './fair-scheduler.ts';
import type { Log } from 'platform/core/log.ts';
import { makeRefusals, type Refusals } from 'platform/events/denials.ts';
import type { Start } from 'platform/service/run.ts';
import { openHotRows, type HotRows } from './counter-shards.ts';
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
  hotRows: HotRows;
  inTurn: ReturnType<typeof turns>;
  /** For what a schema or a content may make long. */
  fairly: Fairly;
  refusals: Refusals;
  clock: Clock;
  config: Config;
  platformStore: PlatformStore;
  bus: EventBus;
  log: Log;
}

export async function openDeps({ config, clock, log, instanceId, openStore, openBus }: Start<Config>): Promise<Deps> {
  const { store, platformStore, hotRows: rows } = await openStore([TYPES, OBJECTS, FENCES, USAGE]);
  const hotRows = await openHotRows({ hotRows: rows, platformStore }, { owner: instanceId, leaseMs: config.LEASE_MS, log });
  return {
    types: typeStore(store, hotRows.rows),
    objects: objectStore(store),
    fences: fenceStore(store),
    usage: usageStore(store, hotRows.rows),
    hotRows,
    inTurn: turns(),
    fairly: fairTurns(),
    refusals: makeRefusals(),
    clock,
    config,
    log,
    platformStore,
    bus: await openBus(['memory.change.v1', 'audit.v1']),
  };
}
