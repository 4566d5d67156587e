/** A queue with round robin between organizations and first in, first out within each of them. */
export interface FairQueue<T> {
  readonly length: number;
  push(organizationId: string, item: T): void;
  shift(): T | undefined;
  remove(organizationId: string, item: T): boolean;
}

export function fairQueue<T>(): FairQueue<T> {
  // A Map keeps the order of insertion: the first organization is served next and then inserted again at the end.
  const queues = new Map<string, T[]>();
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(organizationId, item) {
      const queue = queues.get(organizationId);
      if (queue) queue.push(item);
      else queues.set(organizationId, [item]);
      length++;
    },
    shift() {
      for (const [organizationId, queue] of queues) {
        queues.delete(organizationId);
        const item = queue.shift();
        if (queue.length > 0) queues.set(organizationId, queue);
        length--;
        return item;
      }
      return undefined;
    },
    remove(organizationId, item) {
      const queue = queues.get(organizationId);
      const index = queue ? queue.indexOf(item) : -1;
      if (!queue || index < 0) return false;
      queue.splice(index, 1);
      if (queue.length === 0) queues.delete(organizationId);
      length--;
      return true;
    },
  };
}
