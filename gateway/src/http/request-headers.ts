import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

/** A name or IPv4 address, or an IPv6 address in brackets; then a port, if there is one (RFC 9110, 7.2). */
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[([\da-f:.]+)\])(?::(\d{1,5}))?$/i;
const MAX_PORT = 65_535;

export function isHost(value: string): boolean {
  const match = HOST.exec(value);
  if (!match) return false;
  const [, ipv6, port] = match;
  return (ipv6 === undefined || isIPv6(ipv6)) && (port === undefined || Number(port) <= MAX_PORT);
}

/** True if the header is there more than once; of some headers `headers` has only the first. */
export function isRepeated({ rawHeaders }: IncomingMessage, name: string): boolean {
  let isThere = false;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] as string;
    if (given.length !== name.length || given.toLowerCase() !== name) continue;
    if (isThere) return true;
    isThere = true;
  }
  return false;
}
