/** Wakes waiting code in this process. Read `count` before you look for work, then no notification is missed. */
export class Notifier {
  /** Number of notifications so far. */
  count = 0;
  readonly #sleepers = new Set<() => void>();

  notify(): void {
    this.count++;
    for (const wake of this.#sleepers) wake();
  }

  /** Resolves once `count` differs from `seen`, at the latest after `timeoutMs`. */
  async wait(seen: number, timeoutMs: number): Promise<void> {
    if (this.count !== seen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    this.#sleepers.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#sleepers.delete(resolve);
  }
}
