import { isIPv6 } from 'node:net';

export interface ConnectionLimits {
  max: number;
  maxPerAddress: number;
}

/** The place of one open connection. */
export interface Place {
  /** A token that the client sent was accepted: the connection keeps its place while its request is under way. */
  keep(): void;
  /** The next request begins. */
  beginWork(): void;
  /** No request is under way any more. */
  endWork(): void;
  /** The connection is closed. */
  giveBack(): void;
}
export interface Places {
  /**
   * @param close closes the connection; called when another one gets its place
   * @returns undefined if this is one too many
   */
  take(address: string, close: () => void): Place | undefined;
}

/** The connections from one address, or from one IPv6 network of the size that a customer gets (RFC 6177). */
interface Site {
  count: number;
  /** Those that never sent a valid token, the oldest first. */
  strangers: Set<Seat>;
  /** The others without a request under way, the longest idle first. */
  idle: Set<Seat>;
}
interface Seat {
  close(): void;
  giveBack(): void;
}

/**
 * Bounds open connections, in all and by the address of the other end. When all places are taken, a newcomer gets that
 * of another connection from the site that has the most, if it has more than the site of the newcomer: of those that
 * never sent a valid token the oldest, or else of those without a request under way the longest idle.
 */
export function makePlaces({ max, maxPerAddress }: ConnectionLimits): Places {
  const byNetwork = new Map<string, number>();
  const sites = new Map<string, Site>();
  let all = 0;

  /** The connection whose place a newcomer to this site may get. */
  function mostDispensable(newcomer: Site): Seat | undefined {
    let most: Site | undefined;
    for (const site of sites.values()) {
      const isCandidate = site === newcomer || site.count > newcomer.count;
      if (isCandidate && site.strangers.size + site.idle.size > 0 && site.count > (most?.count ?? 0)) most = site;
    }
    const [seat] = most?.strangers.size ? most.strangers : (most?.idle ?? []);
    return seat;
  }

  return {
    take(address, close) {
      const networks = networksOf(address);
      const widest = networks.at(-1)!;
      const site = sites.get(widest) ?? { count: 0, strangers: new Set(), idle: new Set() };
      // a wider network may have twice as many as each of its halves may have
      if (networks.some((network, i) => (byNetwork.get(network) ?? 0) >= maxPerAddress * 2 ** i)) return undefined;
      if (all >= max) {
        const seat = mostDispensable(site);
        if (!seat) return undefined;
        seat.giveBack();
        seat.close();
      }
      all++;
      for (const network of networks) byNetwork.set(network, (byNetwork.get(network) ?? 0) + 1);
      sites.set(widest, site);
      site.count++;
      let isOpen = true;
      let isKnown = false;
      const leaveIdle = (): boolean => site.strangers.delete(seat) || site.idle.delete(seat);
      const seat: Seat = {
        close,
        giveBack() {
          if (!isOpen) return;
          isOpen = false;
          leaveIdle();
          all--;
          for (const network of networks) decrease(byNetwork, network);
          if (--site.count === 0) sites.delete(widest);
        },
      };
      site.strangers.add(seat);
      return {
        giveBack: seat.giveBack,
        keep() {
          isKnown = true;
          leaveIdle();
        },
        beginWork() {
          if (isKnown) leaveIdle();
        },
        endWork() {
          if (isOpen && isKnown) site.idle.add(seat);
        },
      };
    },
  };
}

function decrease(counts: Map<string, number>, key: string): void {
  const left = counts.get(key)! - 1;
  if (left === 0) counts.delete(key);
  else counts.set(key, left);
}

/**
 * The address, or for IPv6 its first 64, 56 and 48 bits: one machine usually has all addresses that begin with the
 * first 64, and one customer often has all those that begin with the first 56 or 48.
 */
export function networksOf(address: string): string[] {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return [mapped];
  if (!isIPv6(address)) return [address];
  const [head = '', tail] = (address.split('%', 1)[0] as string).split('::') as [string, string?];
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter((group) => group !== '').length;
  const [a, b, c, d] = [...groups, ...Array<string>(missing).fill('0'), ...(tail ?? '').split(':')].map((group) =>
    Number.parseInt(group, 16),
  ) as [number, number, number, number];
  const written = (...numbers: number[]): string => numbers.map((number) => number.toString(16)).join(':');
  return [`${written(a, b, c, d)}/64`, `${written(a, b, c, d & 0xff00)}/56`, `${written(a, b, c)}/48`];
}
