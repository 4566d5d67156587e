/** Wakes what waits in this process; whoever read the count of rings before looking for work misses none. */
export class Bell {
  rings = 0;
  readonly #sleepers = new Set<() => void>();

  ring(): void {
    this.rings++;
    for (const wake of this.#sleepers) wake();
  }

  /** Resolves when the bell has rung since its count was `seen`, at the latest after timeoutMs. */
  async wait(seen: number, timeoutMs: number): Promise<void> {
    if (this.rings !== seen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    this.#sleepers.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#sleepers.delete(resolve);
  }
}
