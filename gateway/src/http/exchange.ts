import type { IncomingMessage, ServerResponse } from 'node:http';
import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { TOKEN_FORM } from 'platform/core/bearer-token.ts';
import type { Route } from '../contract/routes.ts';
import type { RequestParts } from '../contract/transcode-request.ts';
import type { Permit } from './byte-budget.ts';

/** The state of one request. Each policy adds what the later policies need. */
export interface Exchange extends RequestParts {
  requestId: string;
  /** Headers of every reply to this request, errors included. */
  headers: Record<string, string>;
  /** Set by find-route. */
  route?: Route;
  /** The template of the path, as it is declared: "/api/memory/objects/{id}". Set by find-route. */
  template?: string;
  /** Of the error that is replied. */
  code?: string;
  /** HTTP status of the error that ended a stream of events, whose own status is 200. */
  endedWith?: number;
  /** Set by authenticate, unless the route is public. */
  principal?: Principal;
  /** Set by admit. */
  permit?: Permit;
  /** The connection keeps its place while the request is under way. Set when the request begins. */
  keepPlace?: () => void;
  /** Lets the bytes of the body come. Set when the request begins. */
  startBody?: () => void;
  /** Drops what is still to come of the body; the connection ends with the reply. Set when the request begins. */
  dropRest?: () => void;
  /** Makes sure that it is noticed when the client leaves, whatever it sends meanwhile. Set when the request begins. */
  watchClient?: () => void;
  /** Cancels the call to the service. Set by call-service, unless the call continues without its client. */
  onClientGone?: () => void;
}

/** Who sends the requests of public routes. */
export const NOBODY = { organizationId: '', subject: '' };

export interface GatewayRequest extends IncomingMessage {
  exchange: Exchange;
}

/** Plain Express middleware. It may be async; an error that it throws becomes the reply. */
export type Policy = (req: GatewayRequest, res: ServerResponse, next: () => void) => void | Promise<void>;

const REQUEST_ID = /^[\w.-]{1,64}$/;
const EXPOSED_HEADERS =
  'Credits-Charged, ETag, Idempotency-Replayed, Link, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id';

/**
 * Starts the exchange of a new request: takes or makes its request id and sets the CORS headers of an allowed origin.
 */
export function beginExchange(req: IncomingMessage, corsOrigins: ReadonlySet<string>): Exchange {
  const given = req.headers['x-request-id'];
  // ids are logged, and a server token that was put into the wrong header must not be
  const isUsable = typeof given === 'string' && REQUEST_ID.test(given) && !TOKEN_FORM.test(given);
  const requestId = isUsable ? given : newId();
  const headers: Record<string, string> = { 'x-request-id': requestId };
  const { origin } = req.headers;
  if (origin !== undefined && corsOrigins.has(origin)) {
    headers['access-control-allow-origin'] = origin;
    headers['access-control-expose-headers'] = EXPOSED_HEADERS;
  }
  return { requestId, headers, pathValues: [], query: '', body: undefined };
}
