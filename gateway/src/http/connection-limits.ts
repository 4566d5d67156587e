import { isIPv6 } from 'node:net';

export interface ConnectionLimits {
  max: number;
  maxPerAddress: number;
}
/** Counts open connections, in all and by the address of the other end. */
export interface ConnectionCount {
  /** @returns false, and counts nothing, if this is one too many */
  tryAdd(address: string): boolean;
  remove(address: string): void;
}

export function countConnections({ max, maxPerAddress }: ConnectionLimits): ConnectionCount {
  const byAddress = new Map<string, number>();
  let all = 0;
  return {
    tryAdd(address) {
      const key = networkOf(address);
      const present = byAddress.get(key) ?? 0;
      if (all >= max || present >= maxPerAddress) return false;
      all++;
      byAddress.set(key, present + 1);
      return true;
    },
    remove(address) {
      const key = networkOf(address);
      const left = (byAddress.get(key) as number) - 1;
      all--;
      if (left === 0) byAddress.delete(key);
      else byAddress.set(key, left);
    },
  };
}

/** The address, or for IPv6 its first 64 bits: one machine usually has all addresses that begin with them. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%', 1)[0] as string).split('::') as [string, string?];
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter((group) => group !== '').length;
  return [...groups, ...Array<string>(missing).fill('0'), ...(tail ?? '').split(':')]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
