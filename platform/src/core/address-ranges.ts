import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { invalid } from './errors.ts';

const MAX_RANGES = 20;
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Networks in the form address/prefix (RFC 4632, RFC 4291), or single addresses, each once.
 * @returns undefined for any address
 * @throws ServiceError INVALID_REQUEST at the first that is no network
 */
export function requireAddressRanges(ranges: readonly string[]): string[] | undefined {
  if (ranges.length > MAX_RANGES)
    throw invalid('/addressRanges', `A server token may have at most ${MAX_RANGES} address ranges`);
  const checked = ranges.map((range, index) => {
    const network = networkOf(range);
    if (!network)
      throw invalid(
        `/addressRanges/${index}`,
        `An address range must be a network such as 203.0.113.0/24 or 2001:db8::/32, not ${range}`,
      );
    return `${network.address}/${network.prefix}`;
  });
  return checked.length === 0 ? undefined : [...new Set(checked)];
}

/** Whether the address is in one of the ranges. An IPv4 address that IPv6 maps is the IPv4 address. */
export function isInRanges(address: string, ranges: readonly string[]): boolean {
  const plain = MAPPED.exec(address)?.[1] ?? address.split('%', 1)[0] ?? '';
  const family = isIPv4(plain) ? 'ipv4' : isIPv6(plain) ? 'ipv6' : undefined;
  if (!family) return false;
  const networks = new BlockList();
  for (const range of ranges) {
    const network = networkOf(range);
    if (network?.family === family) networks.addSubnet(network.address, network.prefix, family);
  }
  return networks.check(plain, family);
}

/** Whether the text is a network, or a single address. */
export const isNetwork = (range: string): boolean => networkOf(range) !== undefined;

function networkOf(range: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [, address = '', length] = /^([\da-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined;
  if (!family || MAPPED.test(address)) return undefined;
  const bits = family === 'ipv4' ? 32 : 128;
  const prefix = length === undefined ? bits : Number(length);
  return prefix <= bits ? { address: address.toLowerCase(), prefix, family } : undefined;
}
