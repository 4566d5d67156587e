import type { IncomingMessage } from 'node:http';
import { newId } from 'platform/core/ids.ts';
import type { Exchange } from './exchange.ts';

const REQUEST_ID = /^[\w.-]{1,64}$/;
const EXPOSED = 'Link, Location, Retry-After, X-Request-Id, Idempotency-Replayed';

/** The first look at a request: its id, and whether its origin may read the replies. */
export function begin(req: IncomingMessage, corsOrigins: ReadonlySet<string>): Exchange {
  const given = req.headers['x-request-id'];
  const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
  const headers: Record<string, string> = { 'x-request-id': requestId };
  const { origin } = req.headers;
  if (origin !== undefined && corsOrigins.has(origin)) {
    headers['access-control-allow-origin'] = origin;
    headers['access-control-expose-headers'] = EXPOSED;
  }
  return { requestId, headers, pathValues: [], query: '', body: undefined };
}
