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
  const forwarded = (name: string): string | undefined => {
    if (trustedProxies === 0) return undefined;
    const values = String(req.headers[name] ?? '').split(',').map((value) => value.trim());
    return values[Math.max(0, values.length - trustedProxies)];
  };
  const proto = forwarded('x-forwarded-proto');
  const scheme = proto === 'http' || proto === 'https' ? proto : (req.socket as TLSSocket).encrypted ? 'https' : 'http';
  const host = forwarded('x-forwarded-host');
  return `${scheme}://${host !== undefined && /^[\w.:[\]-]+$/.test(host) ? host : req.headers.host ?? 'localhost'}`;
}
