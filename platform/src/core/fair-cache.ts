/** A cache that organizations share fairly. Its methods take the organization first. */
export interface FairCache<T> {
  get(organizationId: string, key: string): T | undefined;
  set(organizationId: string, key: string, value: T, bytes: number): void;
}

/**
 * A cache of at most `maxBytes` in all. When it is full, the organization that uses most gives up what it used least
 * recently. So an organization that uses at most `maxBytes` divided by the number of organizations in the cache loses
 * nothing, whatever the others do.
 */
export function fairCache<T>(maxBytes: number): FairCache<T> {
  interface Share {
    /** A Map keeps the order of insertion: the least recently used entry first. */
    entries: Map<string, { value: T; bytes: number }>;
    bytes: number;
  }
  const shares = new Map<string, Share>();
  let totalBytes = 0;

  function remove(organizationId: string, share: Share, key: string): void {
    const bytes = share.entries.get(key)?.bytes ?? 0;
    share.entries.delete(key);
    share.bytes -= bytes;
    totalBytes -= bytes;
    if (share.entries.size === 0) shares.delete(organizationId);
  }

  function removeOne(): void {
    const [organizationId, share] = [...shares].reduce((most, next) => (next[1].bytes > most[1].bytes ? next : most));
    const [oldest] = share.entries.keys();
    remove(organizationId, share, oldest!);
  }

  return {
    get(organizationId, key) {
      const entries = shares.get(organizationId)?.entries;
      const entry = entries?.get(key);
      if (!entries || !entry) return undefined;
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    set(organizationId, key, value, bytes) {
      const present = shares.get(organizationId);
      if (present) remove(organizationId, present, key);
      const share = shares.get(organizationId) ?? { entries: new Map(), bytes: 0 };
      shares.set(organizationId, share);
      share.entries.set(key, { value, bytes });
      share.bytes += bytes;
      totalBytes += bytes;
      while (totalBytes > maxBytes) removeOne();
    },
  };
}
