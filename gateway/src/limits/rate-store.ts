import type { Admitted } from './window.ts';

/** What a gateway has admitted of one key. */
export interface OwnCount extends Admitted {
  key: string;
}
export interface Shared {
  /** The store's time, in milliseconds since the epoch. */
  nowMs: number;
  /** Gateways that have called lately, this one included. */
  gateways: number;
  /** Another value when the store has forgotten what it was told. */
  epoch: string;
  /** What the other gateways have admitted: one for each count, in their order. */
  others: readonly Admitted[];
}

/** Where gateways tell each other what they have admitted. Engines: auth, Redis. */
export interface RateStore {
  /** Tells the gateway's own counts of a window and the one before. @throws when the store does not answer */
  share(window: number, counts: readonly OwnCount[]): Promise<Shared>;
  close(): void;
}
