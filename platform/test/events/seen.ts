/** Records what handlers received, in order, and lets a test wait until it is what the test expects. */
export class Seen<T> {
  readonly items: T[] = [];
  readonly #waiting = new Set<() => void>();

  add(item: T): void {
    this.items.push(item);
    for (const check of this.#waiting) check();
  }

  async until(condition: (items: readonly T[]) => boolean): Promise<void> {
    if (condition(this.items)) return;
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!condition(this.items)) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
    });
  }

  /** Resolves when there are at least `n` items. */
  count = (n: number): Promise<void> => this.until((items) => items.length >= n);
}
