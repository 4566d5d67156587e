import type { Collection, FindOptions, Op, OpenStore } from './store.ts';
import type { Turns } from './turns.ts';

/**
 * What SQLite and MongoDB implement. An engine knows nothing of organizations or document versions; the collections and
 * operations that it gets are checked already (see openStoreOn).
 */
export interface Engine extends Pick<OpenStore, 'counterShards' | 'exclusive' | 'cutBackLog' | 'close'> {
  /** As OpenTelemetry names it. */
  readonly system: 'sqlite' | 'mongodb';
  /** What may touch more than a bounded number of documents gives way to other organizations by `turns`. */
  find(
    collection: Collection<never>,
    filter: Readonly<Record<string, unknown>>,
    options: FindOptions<never>,
    turns: Turns,
  ): Promise<unknown[]>;
  /** @param limit counts no further */
  count(
    collection: Collection<never>,
    filter: Readonly<Record<string, unknown>>,
    limit: number | undefined,
    turns: Turns,
  ): Promise<number>;
  sum(
    collection: Collection<never>,
    filter: Readonly<Record<string, unknown>>,
    field: string,
    turns: Turns,
  ): Promise<number>;
  /** At least one operation. Copies what it needs of `ops` before its first await: the caller may change them then. */
  apply(ops: readonly Op[]): Promise<void>;
  /** Milliseconds since the epoch. */
  now(): Promise<number>;
}
