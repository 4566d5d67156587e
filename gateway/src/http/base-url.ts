import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

export interface UrlSettings {
  /** "https://api.example.com"; empty: scheme and host of the request. */
  publicUrl: string;
  /** How many proxies stand before this process; only what they add to a request counts. */
  trustedProxies: number;
}

/** Scheme and host under which the client reached us, without a slash at the end. */
export function baseUrl(req: IncomingMessage, { publicUrl, trustedProxies }: UrlSettings): string {
  if (publicUrl !== '') return publicUrl;
  const proto = forwarded(req, 'proto', trustedProxies)?.toLowerCase();
  const scheme = proto === 'http' || proto === 'https' ? proto : (req.socket as TLSSocket).encrypted ? 'https' : 'http';
  const host = forwarded(req, 'host', trustedProxies);
  return `${scheme}://${host !== undefined && /^[\w.:[\]-]+$/.test(host) ? host : (req.headers.host ?? 'localhost')}`;
}

/** From `Forwarded` (RFC 7239) or `X-Forwarded-*`; where they differ one of them may be the client's own, so neither counts. */
function forwarded({ headers }: IncomingMessage, name: 'proto' | 'host', trustedProxies: number): string | undefined {
  if (trustedProxies === 0) return undefined;
  const element = outermost(headers.forwarded, trustedProxies) ?? '';
  const standard = new RegExp(`(?:^|;)\\s*${name}="?([^";]*)`, 'i').exec(element)?.[1]?.trim();
  const usual = outermost(headers[`x-forwarded-${name}`], trustedProxies);
  return standard === undefined || usual === undefined || standard === usual ? (standard ?? usual) : undefined;
}

/**
 * What the outermost trusted proxy wrote: each appends, so count from the right. No comma of a quoted string counts: proxies
 * write none, and a quote that a client leaves open must not swallow what they append.
 */
function outermost(header: string | string[] | undefined, trustedProxies: number): string | undefined {
  if (header === undefined) return undefined;
  const values = String(header).split(',');
  return (values[Math.max(0, values.length - trustedProxies)] as string).trim();
}
