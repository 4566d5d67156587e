import { STATUS_CODES, type ServerResponse } from 'node:http';
import fresh from 'fresh';
import { tagInCoding } from 'platform/core/entity-tag.ts';
import { byteLength, slicesOf, type JsonText } from '../contract/json-text.ts';
import { acceptedCodings, compress, type Coding, type Compress } from './content-coding.ts';
import { LINGER_BYTES } from './connection.ts';
import type { GatewayRequest } from './exchange.ts';

/** A reply before it is written. */
export interface Reply<Body = JsonText> {
  status: number;
  headers?: Record<string, string>;
  /** Undefined: no body. */
  body?: Body;
  /** Of an error. */
  code?: string;
  /** In place of `compress`, for a body that was compressed before. */
  compress?: Compress;
}

const COMPRESS_FROM_BYTES = 1024;
/** A larger body is written in such slices, so that the server sees whether the client takes them. */
const SLICE_BYTES = 65_536;

/** Passed to writeHead in one object, because fifteen setHeader calls cost more than the rest of a small reply. */
export const STATIC_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  vary: 'Accept-Encoding, Origin',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** Writes the reply of a request. Does nothing if the client has gone or the drain has already answered the request. */
export async function sendReply(req: GatewayRequest, res: ServerResponse, reply: Reply): Promise<void> {
  if (hasCostlyRest(req)) req.exchange.dropRest?.();
  const headers: Record<string, string | number> = { ...STATIC_HEADERS, ...req.exchange.headers, ...reply.headers };
  if (reply.code !== undefined) req.exchange.code = reply.code;
  // a client that waits for "100 Continue" never sends the body that this connection still expects
  if (req.headers.expect !== undefined && !req.complete) headers.connection = 'close';
  const { body = '' } = reply;
  let pieces: Exclude<JsonText, string> = typeof body === 'string' ? [Buffer.from(body)] : body;
  let length = byteLength(pieces);
  const codings: [Coding, ...Coding[]] = length > COMPRESS_FROM_BYTES ? acceptedCodings(req) : ['identity'];
  const held = reply.status === 200 ? codingOfHeld(req, codings, headers.etag) : undefined;
  const coding = held ?? codings[0];
  const status = held === undefined ? reply.status : 304;
  if (typeof headers.etag === 'string') headers.etag = tagInCoding(headers.etag, coding);
  if (reply.body === undefined || held !== undefined) {
    pieces = [];
    delete headers['content-type'];
  } else {
    if (coding !== 'identity') {
      const bytes = await (reply.compress ?? compress)(coding, Buffer.concat([...slicesOf(pieces, length)]));
      pieces = [bytes];
      length = bytes.length;
      headers['content-encoding'] = coding;
    }
    headers['content-length'] = length;
    req.exchange.permit?.resize(length);
  }
  if (res.destroyed || res.headersSent) return;
  res.writeHead(status, headers);
  const [first, ...rest] = pieces;
  if (rest.length === 0 && (first?.length ?? 0) <= SLICE_BYTES) res.end(first);
  else if (req.method === 'HEAD') res.end();
  else await writeSlices(res, pieces);
}

/** A body that nobody reads, and that would cost more than to begin a new connection: each chunk costs as a request. */
const hasCostlyRest = ({ complete, headers }: GatewayRequest): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > LINGER_BYTES);

/**
 * A conditional GET (RFC 9110, 13.1.2): the coding in which the client holds this version, of those that it takes now;
 * undefined if in none. Of the request's headers only `If-None-Match` is passed on: `fetch` adds
 * `Cache-Control: no-cache`, with which `fresh` calls every reply new, but which means caches on the way.
 */
const codingOfHeld = (
  { method, headers }: GatewayRequest,
  codings: readonly Coding[],
  etag: string | number | undefined,
): Coding | undefined =>
  headers['if-none-match'] !== undefined && (method === 'GET' || method === 'HEAD') && typeof etag === 'string'
    ? codings.find((coding) =>
        fresh({ 'if-none-match': headers['if-none-match'] }, { etag: tagInCoding(etag, coding) }),
      )
    : undefined;

/** Writes each slice when the client has taken the one before, and lets other requests have their turn in between. */
async function writeSlices(res: ServerResponse, body: JsonText): Promise<void> {
  for (const slice of slicesOf(body, SLICE_BYTES)) {
    if (res.destroyed) break;
    if (!res.write(slice)) await drainedOrClosed(res);
    await otherTurn();
  }
  res.end();
}

const otherTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function drainedOrClosed(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      res.off('drain', settle).off('close', settle);
      resolve();
    };
    res.on('drain', settle).on('close', settle);
  });
}

/** A complete HTTP response as text, for a connection without a request that node could parse. */
export function rawReply({ status, headers, body = '' }: Reply<string>, requestId: string): string {
  const all = {
    ...STATIC_HEADERS,
    ...headers,
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
