/** Which runs are evaluated, which wait, and whose turn is next. `T` is a waiting run. */
export interface RunQueue<T> {
  /** Runs that are evaluated. */
  readonly running: number;
  /** Runs that wait. */
  readonly length: number;
  /**
   * Counts a run as running if it need not wait.
   * @param options.spare whether a runner beyond `size` stands ready
   */
  admit(organizationId: string, options: { spare: boolean }): boolean;
  /**
   * Adds a run that waits. When the queue is full, the newest run of the organization with the most waiting runs leaves
   * it, which may be the one that was added.
   * @returns the run that left
   */
  push(organizationId: string, run: T): T | undefined;
  /**
   * Takes the next run that may be evaluated and counts it as running: of the organizations with the fewest running
   * runs, the one that has used the least processor time.
   */
  next(): T | undefined;
  /** A run has ended. */
  end(organizationId: string, cpuMs: number): void;
  remove(organizationId: string, run: T): void;
  /** Takes all runs that wait. */
  clear(): T[];
}

interface Organization<T> {
  waiting: T[];
  running: number;
  /** Processor time of its ended runs; at least the least that another one had used when it came (fair queueing). */
  usedMs: number;
}

/**
 * Shares the runners between organizations. `size` runs are evaluated at once, and up to `maxSize` if each further one
 * is the only run of its organization: so an organization with nothing running waits for no other one, until `maxSize`
 * runs are running.
 * @param options.limit runs that may wait
 */
export function runQueue<T>({ size, maxSize, limit }: { size: number; maxSize: number; limit: number }): RunQueue<T> {
  const organizations = new Map<string, Organization<T>>();
  let running = 0;
  let length = 0;

  const isActive = (organization: Organization<T>): boolean =>
    organization.running > 0 || organization.waiting.length > 0;
  const mayStart = (organization: Organization<T>): boolean => running < (organization.running === 0 ? maxSize : size);

  /** Infinity when nothing is active. */
  const leastUsedMs = (): number =>
    organizations
      .values()
      .filter(isActive)
      .reduce((leastMs, { usedMs }) => Math.min(leastMs, usedMs), Infinity);

  function find(organizationId: string): Organization<T> {
    const known = organizations.get(organizationId);
    if (known && isActive(known)) return known;
    const leastMs = running + length > 0 ? leastUsedMs() : 0;
    const organization = { waiting: [], running: 0, usedMs: Math.max(known?.usedMs ?? 0, leastMs) };
    organizations.set(organizationId, organization);
    return organization;
  }

  /** Moves the organization behind those that have used as much as it has. */
  function start(organizationId: string, organization: Organization<T>): void {
    organization.running += 1;
    running += 1;
    organizations.delete(organizationId);
    organizations.set(organizationId, organization);
  }

  return {
    get running() {
      return running;
    },
    get length() {
      return length;
    },
    admit(organizationId, { spare }) {
      const organization = find(organizationId);
      const isAdmitted = running < size || (spare && organization.waiting.length === 0 && mayStart(organization));
      if (isAdmitted) start(organizationId, organization);
      return isAdmitted;
    },
    push(organizationId, run) {
      let longest = find(organizationId);
      longest.waiting.push(run);
      if (length < limit) {
        length += 1;
        return undefined;
      }
      for (const other of organizations.values()) if (other.waiting.length > longest.waiting.length) longest = other;
      return longest.waiting.pop();
    },
    next() {
      let best: [string, Organization<T>] | undefined;
      for (const entry of organizations)
        if (entry[1].waiting.length > 0 && (!best || isBefore(entry[1], best[1]))) best = entry;
      if (!best || !mayStart(best[1])) return undefined;
      start(...best);
      length -= 1;
      return best[1].waiting.shift();
    },
    end(organizationId, cpuMs) {
      const ended = find(organizationId);
      ended.usedMs += cpuMs;
      ended.running -= 1;
      running -= 1;
      // Whoever has used more than another one is remembered until that one has caught up.
      const leastMs = leastUsedMs();
      for (const [id, organization] of organizations)
        if (!isActive(organization) && organization.usedMs <= leastMs) organizations.delete(id);
    },
    remove(organizationId, run) {
      const waiting = organizations.get(organizationId)?.waiting ?? [];
      const index = waiting.indexOf(run);
      if (index < 0) return;
      waiting.splice(index, 1);
      length -= 1;
    },
    clear() {
      length = 0;
      return [...organizations.values()].flatMap(({ waiting }) => waiting.splice(0));
    },
  };
}

const isBefore = (one: Organization<unknown>, other: Organization<unknown>): boolean =>
  one.running < other.running || (one.running === other.running && one.usedMs < other.usedMs);
