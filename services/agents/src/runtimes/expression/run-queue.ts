/** Which runs are evaluated, which wait, and whose turn is next. `T` is a waiting run. */
export interface RunQueue<T> {
  /** Runs that are evaluated. */
  readonly running: number;
  /** Runs that wait. */
  readonly length: number;
  /**
   * Counts a run as running if it need not wait.
   * @param options.isIdle whether a runner beyond `size` is there for it, and has nothing to do
   */
  admit(organizationId: string, options: { isIdle: boolean }): boolean;
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
  /** The same for one organization, if none of its runs is running. */
  first(organizationId: string): T | undefined;
  /** A run has ended. @returns whether its organization now has runs that wait, and none that is running */
  end(organizationId: string, cpuMs: number): boolean;
  remove(organizationId: string, run: T): void;
  /** Takes all runs that wait. */
  clear(): T[];
}

interface Organization<T> {
  waiting: T[];
  running: number;
  /** Processor time of its runs, counted from `fairMs` when it came. */
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
  /** What an organization would have used that always got its share (the virtual time of fair queueing). */
  let fairMs = 0;

  const isActive = (organization: Organization<T>): boolean =>
    organization.running > 0 || organization.waiting.length > 0;
  const mayStart = (organization: Organization<T>): boolean => running < (organization.running === 0 ? maxSize : size);

  function find(organizationId: string): Organization<T> {
    let organization = organizations.get(organizationId);
    if (!organization) organizations.set(organizationId, (organization = { waiting: [], running: 0, usedMs: fairMs }));
    if (!isActive(organization)) organization.usedMs = Math.max(organization.usedMs, fairMs);
    return organization;
  }

  /** Moves the organization behind those that have used as much as it has. */
  function start(organizationId: string, organization: Organization<T>): void {
    organization.running += 1;
    running += 1;
    organizations.delete(organizationId);
    organizations.set(organizationId, organization);
  }

  function take(organizationId: string, organization: Organization<T>): T | undefined {
    start(organizationId, organization);
    length -= 1;
    return organization.waiting.shift();
  }

  return {
    get running() {
      return running;
    },
    get length() {
      return length;
    },
    admit(organizationId, { isIdle }) {
      const organization = find(organizationId);
      const mayGoFirst = organization.waiting.length === 0 && (isIdle || length >= limit);
      const isAdmitted = running < size || (mayGoFirst && mayStart(organization));
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
      return best && mayStart(best[1]) ? take(...best) : undefined;
    },
    first(organizationId) {
      const organization = organizations.get(organizationId);
      if (!organization || organization.waiting.length === 0 || organization.running > 0) return undefined;
      return mayStart(organization) ? take(organizationId, organization) : undefined;
    },
    end(organizationId, cpuMs) {
      const ended = find(organizationId);
      fairMs += cpuMs / [...organizations.values()].filter(isActive).length;
      ended.usedMs += cpuMs;
      ended.running -= 1;
      running -= 1;
      // Whoever used more than its share is remembered until the others have caught up.
      for (const [id, organization] of organizations)
        if (!isActive(organization) && (organization.usedMs <= fairMs || running + length === 0))
          organizations.delete(id);
      return ended.running === 0 && ended.waiting.length > 0;
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
