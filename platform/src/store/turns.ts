import { fairQueue } from '../core/fair-queue.ts';
import { fairScheduler } from '../core/fair-scheduler.ts';
import { makeShares } from '../core/shares.ts';

/**
 * What a read costs is counted in entries of an index that it passes, about 0.1 µs each. One piece of work, and all
 * that an organization reads at once in a turn of the event loop, are at most this: some milliseconds.
 */
export const ENTRIES_A_TURN = 10_000;
/** What a statement, a look into an index, and a document cost, counted in entries. */
export const STATEMENT = 100;
export const LOOK = 20;
export const DOCUMENT = 20;
/** A read of which nobody knows how many documents it finds is at first one of so many. */
export const PIECE_DOCUMENTS = 250;
export const PIECE_BYTES = 262_144;

/** How the reads of one organization give way to others. */
export interface Turns {
  /**
   * Runs a piece of a read on this thread: at once if it costs little and the organization has not read much in this
   * turn of the event loop, else when it is the organization's turn.
   * @param most what it may cost; without it, it waits for its turn
   * @param cost what it did cost
   */
  inTurn<T>(work: () => T, most?: number, cost?: (result: T) => number): Promise<T>;
  /** Runs a large read of another machine: few at once in all, and of one organization at most half of them. */
  inPlace<T>(work: () => Promise<T>): Promise<T>;
}

/** For what the platform reads: it bounds its batches itself. */
export const atOnce: Turns = { inTurn: async (work) => work(), inPlace: (work) => work() };

const PLACES = 8;

/** @returns the turns of an organization. Its name is '' for the platform, whose small reads are not counted. */
export function makeTurns(): (organizationId: string) => Turns {
  const schedule = fairScheduler();
  const inPlace = places();
  // A new one for each turn of the loop, because V8 may keep what a Map contained for long (ADR 24).
  let used = new Map<string, number>();
  const forget = (): void => void (used = new Map());

  return (organizationId) => ({
    async inTurn(work, most = Infinity, cost = () => most) {
      const before = used.get(organizationId) ?? 0;
      if (most > ENTRIES_A_TURN || before >= ENTRIES_A_TURN) return schedule(organizationId, work);
      const result = work();
      if (organizationId === '') return result;
      if (used.size === 0) setImmediate(forget);
      used.set(organizationId, before + cost(result));
      return result;
    },
    inPlace: (work) => inPlace(organizationId, work),
  });
}

function places(): <T>(organizationId: string, work: () => Promise<T>) => Promise<T> {
  const waiting = fairQueue<() => void>();
  const shares = makeShares(PLACES);

  function begin(): void {
    for (let next; (next = waiting.shift(shares.mayTake)); next.item()) shares.take(next.organizationId);
  }

  return async (organizationId, work) => {
    await new Promise<void>((resolve) => {
      waiting.push(organizationId, resolve);
      begin();
    });
    try {
      return await work();
    } finally {
      shares.giveBack(organizationId);
      begin();
    }
  };
}
