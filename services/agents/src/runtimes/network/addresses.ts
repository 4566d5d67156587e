import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { isInRanges } from 'platform/core/address-ranges.ts';
import type { LookupAll } from './lookup-in-turn.ts';

/** An endpoint has an address that may not be called. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  constructor() {
    super('the address may not be called');
  }
}

/** IPv6 addresses of the public internet begin with these three bits (RFC 4291, 2.4). */
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * Whether an address is one of the public internet: not loopback, private, link-local, shared, reserved, multicast, of
 * documentation, nor one that carries an IPv4 address within it (RFC 6890 and the registries of IANA).
 */
export function isPublic(address: string): boolean {
  if (!isIP(address) || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST);
}

/**
 * Whether an agent may be called at this address: a public one by https, and one of the listed networks by either.
 * @param networks in the form address/prefix
 */
export const isCallable = (address: string, protocol: string, networks: readonly string[]): boolean =>
  isInRanges(address, networks) || (protocol === 'https:' && isPublic(address));

/** Whether a URL holds an address, rather than a name, that may not be called. No look-up is made for it. */
export function hasForbiddenAddress({ hostname, protocol }: URL, networks: readonly string[]): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && !isCallable(host, protocol, networks);
}

/**
 * Resolves names to those of their addresses that may be dialled, so that a name cannot lead anywhere else.
 * @param resolve finds all addresses of a name
 */
export const lookupOnly =
  (isAllowed: (address: string) => boolean, resolve: LookupAll): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const allowed = found.filter(({ address }) => isAllowed(address));
      if (allowed.length === 0) return callback(new ForbiddenAddressError(), []);
      return options.all ? callback(null, allowed) : callback(null, allowed[0]!.address, allowed[0]!.family);
    });
  };
