/**
 * What is open for a short time, such as the calls of a stream, by its id: a hash table with a fixed number of buckets.
 * A Map makes a new table for every few entries that come and go. A former table refers to the next one, so one that is
 * in V8's old space keeps all later ones and their entries, thousands of requests, until the next full collection
 * (ADR 24).
 */
export interface OpenItems<T> {
  readonly size: number;
  get(id: number): T | undefined;
  /** The id must be free. */
  set(id: number, item: T): void;
  delete(id: number): boolean;
  /** In no order. `visit` may delete the item. */
  forEach(visit: (item: T, id: number) => void): void;
}

/** Ids rise by one, so up to so many open items share no bucket. */
const BUCKETS = 1_024;

interface Entry<T> {
  readonly id: number;
  readonly item: T;
  next: Entry<T> | undefined;
}

export function makeOpenItems<T>(): OpenItems<T> {
  const first: (Entry<T> | undefined)[] = Array.from({ length: BUCKETS }, () => undefined);
  let size = 0;

  return {
    get size() {
      return size;
    },
    get(id) {
      let entry = first[id % BUCKETS];
      while (entry !== undefined && entry.id !== id) entry = entry.next;
      return entry?.item;
    },
    set(id, item) {
      first[id % BUCKETS] = { id, item, next: first[id % BUCKETS] };
      size++;
    },
    delete(id) {
      let before: Entry<T> | undefined;
      let entry = first[id % BUCKETS];
      while (entry !== undefined && entry.id !== id) [before, entry] = [entry, entry.next];
      if (entry === undefined) return false;
      if (before === undefined) first[id % BUCKETS] = entry.next;
      else before.next = entry.next;
      size--;
      return true;
    },
    forEach(visit) {
      for (let entry of first)
        while (entry !== undefined) {
          const { id, item, next }: Entry<T> = entry;
          visit(item, id);
          entry = next;
        }
    },
  };
}
