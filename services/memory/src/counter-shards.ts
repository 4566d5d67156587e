import { requireCaller } from 'platform/store/retry-on-conflict.ts';
import { acquireLease, keepLease, releaseLease, type Lease } from 'platform/jobs/lease.ts';
import type { Log } from 'platform/core/log.ts';
import type { OpenStore } from 'platform/store/store.ts';

/** Rows of one process; with fewer processes than slots, no two of them ever write one row. */
const SLOT_ROWS = 8;

/**
 * The rows over which a contended counter is spread. Two batches that write one row at once abort each other on MongoDB:
 * a wrong row costs an abort, never a wrong count (figures: design/facts/real-engines.md).
 */
export interface CounterShards {
  /** How many there are of every counter. */
  readonly rows: number;
  /**
   * Runs work with a row that no other work of this process on this organization has meanwhile.
   * @throws ServiceError CLIENT_GONE when the signal aborted before there was one: behind an engine that hangs, many wait
   */
  take<T>(organizationId: string, signal: AbortSignal, work: (row: number) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Without slots: for an engine that has one row, whose batches wait for each other by themselves. */
export const singleShard: CounterShards = { rows: 1, take: (_, __, work) => work(0), close: async () => undefined };

/**
 * Leases a slot of rows to this process; while there is none for it, it shares one and asks again every `leaseMs`.
 * @param owner unique per process
 */
export async function openCounterShards(
  { counterShards: rows, platformStore }: Pick<OpenStore, 'counterShards' | 'platformStore'>,
  { owner, leaseMs, log }: { owner: string; leaseMs: number; log: Log },
): Promise<CounterShards> {
  if (rows === 1) return singleShard;
  const slots = Math.ceil(rows / SLOT_ROWS);
  const shared = Math.floor(Math.random() * slots);
  let keeper: ReturnType<typeof keepLease> | undefined;
  let takeRow = freeRows(slotOf(shared, rows));
  let closed = false;
  let again: NodeJS.Timeout | undefined;
  let asking: Promise<void> | undefined;

  async function lease(): Promise<boolean> {
    for (let slot = 0; slot < slots; slot++) {
      const held = await acquireLease(platformStore, nameOf(slot), owner, leaseMs);
      if (held === undefined) continue;
      hold(slot, held);
      return true;
    }
    return false;
  }

  function hold(slot: number, held: Lease): void {
    takeRow = freeRows(slotOf(slot, rows));
    keeper = keepLease(platformStore, held, leaseMs);
    keeper.signal.addEventListener('abort', () => {
      void keeper?.end();
      keeper = undefined;
      log.warn({ slot }, 'lost the slot of rows; it is used on until another is leased');
      ask();
    });
  }

  function ask(): void {
    if (closed) return;
    asking = lease()
      .catch((error: unknown) => log.debug({ error }, 'no slot of rows could be leased'))
      .then((held) => {
        if (!held) askLater();
      });
  }

  function askLater(): void {
    if (!closed) again = setTimeout(ask, leaseMs).unref();
  }

  if (!(await lease())) {
    log.warn({ slots }, 'every slot of rows is leased by another process; writers may abort each other');
    askLater();
  }
  return {
    rows,
    take: (organizationId, signal, work) => takeRow(organizationId, signal, work),
    async close() {
      closed = true;
      clearTimeout(again);
      await asking;
      const held = await keeper?.end();
      if (held) await releaseLease(platformStore, held);
    },
  };
}

const nameOf = (slot: number): string => `hot-rows:${slot}`;
const slotOf = (slot: number, rows: number): number[] =>
  Array.from({ length: Math.min(SLOT_ROWS, rows - slot * SLOT_ROWS) }, (_, i) => slot * SLOT_ROWS + i);

/** A free list for each key: whoever finds none of the rows free waits for the next that is given back. */
export function freeRows(own: readonly number[]): CounterShards['take'] {
  const keys = new Map<string, { free: number[]; waiting: ((row: number) => void)[] }>();
  return async (key, signal, work) => {
    let list = keys.get(key);
    if (list === undefined) keys.set(key, (list = { free: [...own], waiting: [] }));
    const row = list.free.shift() ?? (await new Promise<number>((resolve) => list.waiting.push(resolve)));
    try {
      requireCaller(signal);
      return await work(row);
    } finally {
      const next = list.waiting.shift();
      if (next) next(row);
      else if (list.free.push(row) === own.length) keys.delete(key);
    }
  };
}
