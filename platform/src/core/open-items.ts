/**
 * What is open for a short time, such as the calls of a stream, by its number. A Map makes a new table for every few
 * entries that come and go. A former table refers to the next one, so one that has reached V8's old space keeps all
 * later ones and their entries, thousands of requests, until the next full collection (ADR 24).
 */
export interface OpenItems<T> {
  readonly size: number;
  get(id: number): T | undefined;
  /** The number must be free. */
  set(id: number, item: T): void;
  delete(id: number): boolean;
  /** In no order. `visit` may delete the item. */
  forEach(visit: (item: T, id: number) => void): void;
}

/** Numbers rise by one, so that each place has one item until there are more. */
const PLACES = 1_024;

interface Entry<T> {
  readonly id: number;
  readonly item: T;
  next: Entry<T> | undefined;
}

export function makeOpenItems<T>(): OpenItems<T> {
  const first: (Entry<T> | undefined)[] = Array.from({ length: PLACES }, () => undefined);
  let size = 0;

  return {
    get size() {
      return size;
    },
    get(id) {
      let entry = first[id % PLACES];
      while (entry !== undefined && entry.id !== id) entry = entry.next;
      return entry?.item;
    },
    set(id, item) {
      first[id % PLACES] = { id, item, next: first[id % PLACES] };
      size++;
    },
    delete(id) {
      let before: Entry<T> | undefined;
      let entry = first[id % PLACES];
      while (entry !== undefined && entry.id !== id) [before, entry] = [entry, entry.next];
      if (entry === undefined) return false;
      if (before === undefined) first[id % PLACES] = entry.next;
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
