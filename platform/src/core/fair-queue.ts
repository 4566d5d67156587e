/** A queue that is first in, first out within an organization and gives every organization its turn. */
export interface FairQueue<T> {
  readonly length: number;
  push(organizationId: string, item: T): void;
  shift(): T | undefined;
  remove(organizationId: string, item: T): boolean;
}

export function fairQueue<T>(): FairQueue<T> {
  // A Map keeps the order of insertion: the first organization is the next one, and goes to the end when it was served.
  const lines = new Map<string, T[]>();
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(organizationId, item) {
      const line = lines.get(organizationId);
      if (line) line.push(item);
      else lines.set(organizationId, [item]);
      length++;
    },
    shift() {
      for (const [organizationId, line] of lines) {
        lines.delete(organizationId);
        const item = line.shift();
        if (line.length > 0) lines.set(organizationId, line);
        length--;
        return item;
      }
      return undefined;
    },
    remove(organizationId, item) {
      const line = lines.get(organizationId);
      const index = line ? line.indexOf(item) : -1;
      if (!line || index < 0) return false;
      line.splice(index, 1);
      if (line.length === 0) lines.delete(organizationId);
      length--;
      return true;
    },
  };
}
