/** One use of a server token. */
export interface Use {
  tokenId: string;
  /** ISO-8601 UTC. */
  at: string;
}

export interface LastUsed {
  note(use: Use): void;
  /** Returns the latest use of each token since the previous drain, and forgets it. */
  drain(): Use[];
}

/** Holds uses in memory until the job `last-used` writes them, so that not every request costs a write. */
export function makeLastUsed(): LastUsed {
  const latest = new Map<string, string>();
  return {
    note({ tokenId, at }) {
      const known = latest.get(tokenId);
      if (known === undefined || known < at) latest.set(tokenId, at);
    },
    drain() {
      const uses = Array.from(latest, ([tokenId, at]) => ({ tokenId, at }));
      latest.clear();
      return uses;
    },
  };
}
