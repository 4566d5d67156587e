import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { isHost } from './request-headers.ts';

export interface UrlSettings {
  /** "https://api.example.com"; empty: scheme and host of the request. */
  publicUrl: string;
  /** Number of proxies in front of the gateway. Only the forwarding headers that they add are trusted. */
  trustedProxies: number;
}

/** Scheme and host by which the client reached the gateway, without a trailing slash. */
export function baseUrl(req: IncomingMessage, { publicUrl, trustedProxies }: UrlSettings): string {
  if (publicUrl !== '') return publicUrl;
  const proto = forwarded(req, 'proto', trustedProxies)?.toLowerCase();
  const scheme = proto === 'http' || proto === 'https' ? proto : (req.socket as TLSSocket).encrypted ? 'https' : 'http';
  const host = forwarded(req, 'host', trustedProxies);
  return `${scheme}://${host !== undefined && isHost(host) ? host : (req.headers.host ?? ownHost(req))}`;
}

/** The address at which this request arrived: an HTTP/1.0 request needs no Host header. */
function ownHost({ socket: { localAddress = '', localPort } }: IncomingMessage): string {
  const address = localAddress.replace(/^::ffff:/i, '');
  return `${isIPv6(address) ? `[${address}]` : address}:${localPort}`;
}

/**
 * Reads `Forwarded` (RFC 7239) and `X-Forwarded-*`. If both are there and differ, the client may have sent one of them,
 * so neither is used.
 */
function forwarded({ headers }: IncomingMessage, name: 'proto' | 'host', trustedProxies: number): string | undefined {
  if (trustedProxies === 0) return undefined;
  const element = outermost(headers.forwarded, trustedProxies) ?? '';
  const standard = new RegExp(`(?:^|;)\\s*${name}="?([^";]*)`, 'i').exec(element)?.[1]?.trim();
  const usual = outermost(headers[`x-forwarded-${name}`], trustedProxies);
  return standard === undefined || usual === undefined || standard === usual ? (standard ?? usual) : undefined;
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
