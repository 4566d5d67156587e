import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** All addresses of a host name. */
export type Resolve = (host: string) => Promise<{ address: string; family: number }[]>;

export const resolveAll: Resolve = (host) => lookup(host, { all: true });
const hostOf = (address: string): string => address.slice(0, address.lastIndexOf(':'));

export const isNumeric = (address: string): boolean => isIP(hostOf(address).replace(/^\[|\]$/g, '')) !== 0;

/** All addresses of a host:port, each host:port; undefined if the name cannot be resolved now. */
export async function allAddresses(address: string, resolve = resolveAll): Promise<string[] | undefined> {
  if (isNumeric(address)) return [address];
  const port = address.slice(address.lastIndexOf(':') + 1);
  try {
    const found = await resolve(hostOf(address));
    return found.map(({ address: host, family }) => `${family === 6 ? `[${host}]` : host}:${port}`);
  } catch {
    return undefined;
  }
}

/**
 * One address of each replica that these host:port stand for, each replica once: of a name with addresses of both
 * families only those of IPv4, because a replica has one of each. A name that cannot be resolved stays as it is.
 */
export async function replicaAddresses(addresses: readonly string[], resolve = resolveAll): Promise<string[]> {
  const found = await Promise.all(
    addresses.map(async (address) => {
      const all = await allAddresses(address, resolve);
      if (!all || all.length === 0) return [address];
      const ofIpv4 = all.filter((each) => !each.startsWith('['));
      return ofIpv4.length > 0 ? ofIpv4 : all;
    }),
  );
  return [...new Set(found.flat())];
}
