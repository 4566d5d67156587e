import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { forwarded } from './forwarded.ts';
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
