/** Wakes what waits in this process. Whoever reads `count` before looking for work misses no notification. */
export class Notifier {
  /** Notifications so far. */
  count = 0;
  readonly #sleepers = new Set<() => void>();

  notify(): void {
    this.count++;
    for (const wake of this.#sleepers) wake();
  }

  /** Resolves when a notification has come since `count` was `seen`, at the latest after `timeoutMs`. */
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
