/** A queue with round robin between organizations and first in, first out within each of them. */
export interface FairQueue<T> {
  readonly isEmpty: boolean;
  /** Those of which something waits. */
  organizationIds(): string[];
  push(organizationId: string, item: T): void;
  /** Takes the next item of an organization that may be served now. */
  shift(mayServe?: (organizationId: string) => boolean): { organizationId: string; item: T } | undefined;
}

export function fairQueue<T>(): FairQueue<T> {
  // A Map keeps the order of insertion: the first organization is served next and then inserted again at the end.
  const queues = new Map<string, T[]>();
  return {
    get isEmpty() {
      return queues.size === 0;
    },
    organizationIds: () => [...queues.keys()],
    push(organizationId, item) {
      const queue = queues.get(organizationId);
      if (queue) queue.push(item);
      else queues.set(organizationId, [item]);
    },
    shift(mayServe = () => true) {
      for (const [organizationId, queue] of queues) {
        if (!mayServe(organizationId)) continue;
        queues.delete(organizationId);
        const item = queue.shift()!;
        if (queue.length > 0) queues.set(organizationId, queue);
        return { organizationId, item };
      }
      return undefined;
    },
  };
}
