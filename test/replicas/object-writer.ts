// A process whose writers create objects of one memory type; its parent sends the order and gets the result by IPC.
import { CreateMemoryObjectRequest } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { systemClock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { newId } from 'platform/core/ids.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import type { CounterShards } from 'platform/jobs/counter-shards.ts';
import { openMongoStore } from 'platform/store/mongo/store.ts';
import type { Collection, OpenStore } from 'platform/store/store.ts';
import { serverToken } from 'platform/service/testing.ts';
import { config } from '../../services/memory/src/config.ts';
import { openDeps, type Deps } from '../../services/memory/src/deps.ts';
import { openGroupedWrites } from '../../services/memory/src/objects/grouped-writes.ts';
import { createMemoryObject } from '../../services/memory/src/objects/create-memory-object.ts';

/** How a writer picks a fence row: from the slot of its process, as the product does, or any row at random. */
export type RowChoice = 'slots' | 'at random';
export interface WriteOrder {
  organizationId: string;
  typeId: string;
  rows: RowChoice;
  writers: number;
  /** Per writer. */
  objects: number;
}
export interface WriteResult {
  /** Of all writers. */
  objects: number;
  /** Transactions that MongoDB aborted. */
  aborts: number;
}

const log = makeLog('memory', 'silent');

export interface MemoryService {
  deps: Deps;
  open: OpenStore;
  aborts(): number;
  close(): Promise<void>;
}

/** Opens the dependencies of the memory service on MongoDB; it leases a slot of counter rows. */
export async function openMemoryService(url: string, database: string): Promise<MemoryService> {
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
});

const COUNTER_SHARDS: Record<RowChoice, (own: CounterShards) => CounterShards> = {
  slots: (own) => own,
  'at random': (own) => ({ ...own, withShard: (_, __, work) => work(Math.floor(Math.random() * own.count)) }),
};

/** Runs the writers concurrently; each creates its objects one after the other. */
export async function writeObjects(
  { deps, aborts }: MemoryService,
  { organizationId, typeId, rows, writers, objects }: WriteOrder,
): Promise<WriteResult> {
  const counterShards = COUNTER_SHARDS[rows](deps.counterShards);
  const before = aborts();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      // Writers that share batches would leave too few to conflict.
      const writerDeps = { ...deps, groupedWrites: openGroupedWrites({ ...deps, counterShards }) };
      for (let turn = 0; turn < objects; turn++) {
        await createMemoryObject(
          writerDeps,
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
  const memory = await openMemoryService(url!, database!);
  process.on(
    'message',
    (order: WriteOrder) => void writeObjects(memory, order).then((result) => process.send!(result)),
  );
  process.on('disconnect', () => void memory.close().then(() => process.exit(0)));
  process.send!('ready');
}
