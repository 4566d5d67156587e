/** A token was used at this ISO-8601 time. */
export interface Use {
  tokenId: string;
  at: string;
}

export interface LastUsed {
  note(use: Use): void;
  /** Takes out the latest use of each token since the last time. */
  drain(): Use[];
}

/** Uses wait in memory, so that a request is not a write. */
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
