// A process of writers of one memory type: told by its parent which, and answers over the channel.
import { CreateMemoryObjectRequest } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { newId } from 'platform/core/ids.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import type { CounterShards } from '../../services/memory/src/counter-shards.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { serverToken } from 'platform/service/testing.ts';
import { config } from '../../services/memory/src/config.ts';
import { openDeps, type Deps } from '../../services/memory/src/deps.ts';
import { createMemoryObject } from '../../services/memory/src/objects/create-memory-object.ts';

/** How a writer picks the row of a batch: as the product does, or one that others may have, too. */
export type Rows = 'slots' | 'at random';
export interface Order {
  organizationId: string;
  typeId: string;
  rows: Rows;
  writers: number;
  objects: number;
}
export interface Written {
  objects: number;
  aborts: number;
}

const log = makeLog('memory', 'silent');

export interface Memory {
  deps: Deps;
  open: OpenStore;
  aborts(): number;
  close(): Promise<void>;
}

/** The memory service's own parts on MongoDB, with a slot of rows of its own. */
export async function openMemory(url: string, database: string): Promise<Memory> {
  let aborts = 0;
  let open: OpenStore;
  const deps = await openDeps({
    config: { ...readConfig(config, {}), LEASE_MS: 120_000 },
    clock: systemClock,
    log,
    instanceId: newId(),
    async openStore(collections: readonly Collection<never>[]) {
      open = await openMongoStore(
        { url, database, poolMax: 40, timeoutMs: 60_000, log, onAbort: () => void aborts++ },
        [...collections, OUTBOX, LEASES],
      );
      return open;
    },
    openBus: async () => undefined,
  } as unknown as Parameters<typeof openDeps>[0]);
  return {
    deps,
    open: open!,
    aborts: () => aborts,
    async close() {
      await deps.counterShards.close();
      await open.close();
    },
  };
}

export const contextOf = (organizationId: string): CallContext => ({
  principal: serverToken(organizationId),
  caller: 'gateway',
  requestId: newId(),
  signal: new AbortController().signal,
  deadline: Date.now() + 600_000,
  log,
});

const PICKS: Record<Rows, (own: CounterShards) => CounterShards> = {
  slots: (own) => own,
  'at random': (own) => ({ ...own, take: (_, __, work) => work(Math.floor(Math.random() * own.rows)) }),
};

/** Each writer makes its objects one after the other. */
export async function write(
  { deps, aborts }: Memory,
  { organizationId, typeId, rows, writers, objects }: Order,
): Promise<Written> {
  const using = { ...deps, counterShards: PICKS[rows](deps.counterShards) };
  const before = aborts();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let turn = 0; turn < objects; turn++) {
        await createMemoryObject(
          using,
          CreateMemoryObjectRequest.fromPartial({ typeId, key: newId(), content: '{"price":1}' }),
          contextOf(organizationId),
        );
      }
    }),
  );
  return { objects: writers * objects, aborts: aborts() - before };
}

if (import.meta.main) {
  const [, , url, database] = process.argv;
  const memory = await openMemory(url!, database!);
  process.on('message', (order: Order) => void write(memory, order).then((written) => process.send!(written)));
  process.on('disconnect', () => void memory.close().then(() => process.exit(0)));
  process.send!('ready');
}
