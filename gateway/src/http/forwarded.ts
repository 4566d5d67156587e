import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

type Name = 'proto' | 'host' | 'for';

/**
 * The address of the client: what the outermost trusted proxy says, otherwise the other end of the connection. A proxy
 * may add a port, and an IPv6 address is in brackets then. Empty if two headers contradict each other: the client may
 * have sent one of them, and would else seem to be the proxy, which may be in the address ranges of a server token.
 */
export function clientAddress(req: IncomingMessage, trustedProxies: number): string {
  if (isContradictory(req, 'for', trustedProxies)) return '';
  const given = forwarded(req, 'for', trustedProxies) ?? '';
  const [, bracketed, plain] = /^"?(?:\[([^\]]+)\](?::\d+)?|([^"]*?))"?$/.exec(given) ?? [];
  const candidates = [bracketed, plain, plain?.replace(/:\d+$/, '')];
  return candidates.find((address) => address !== undefined && isIP(address) !== 0) ?? req.socket.remoteAddress ?? '';
}

/**
 * Reads `Forwarded` (RFC 7239) and `X-Forwarded-*`. If both are there and differ, the client may have sent one of them,
 * so neither is used.
 */
export function forwarded(req: IncomingMessage, name: Name, trustedProxies: number): string | undefined {
  const { standard, usual } = both(req, name, trustedProxies);
  return isContradictory(req, name, trustedProxies) ? undefined : (standard ?? usual);
}

function isContradictory(req: IncomingMessage, name: Name, trustedProxies: number): boolean {
  const { standard, usual } = both(req, name, trustedProxies);
  return standard !== undefined && usual !== undefined && standard !== usual;
}

/** What `Forwarded` says, and what `X-Forwarded-*` says. */
function both({ headers }: IncomingMessage, name: Name, trustedProxies: number): { standard?: string; usual?: string } {
  if (trustedProxies === 0) return {};
  const element = outermost(headers.forwarded, trustedProxies) ?? '';
  const standard = new RegExp(`(?:^|;)\\s*${name}="?([^";]*)`, 'i').exec(element)?.[1]?.trim();
  const usual = outermost(headers[`x-forwarded-${name}`], trustedProxies);
  return { ...(standard !== undefined && { standard }), ...(usual !== undefined && { usual }) };
}

/**
 * The element that the outermost trusted proxy wrote. Each proxy appends an element, so we count from the right. Splits
 * at every comma, also within quotes: proxies quote no commas, and a quote that a client leaves open must not hide what
 * the proxies append.
 */
function outermost(header: string | string[] | undefined, trustedProxies: number): string | undefined {
  if (header === undefined) return undefined;
  const values = String(header).split(',');
  return (values[Math.max(0, values.length - trustedProxies)] as string).trim();
}
