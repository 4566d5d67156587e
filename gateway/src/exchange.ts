import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from 'platform/principal.ts';
import type { Route } from './routes.ts';

/** What the policies learn of one request, each for the next ones. */
export interface Exchange {
  requestId: string;
  /** Headers of every reply to this request, errors included. */
  headers: Record<string, string>;
  /** Set by find-route. */
  route?: Route;
  pathValues: string[];
  /** Raw, without "?". */
  query: string;
  /** Set by authenticate, unless the route is public. */
  principal?: Principal;
  /** Set by read-body: the JSON value, undefined when the route takes none. */
  body: unknown;
}

export interface GatewayRequest extends IncomingMessage {
  exchange: Exchange;
}

/** Plain Express middleware; it may be async, and what it throws becomes the reply. */
export type Policy = (req: GatewayRequest, res: ServerResponse, next: () => void) => void | Promise<void>;

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  /** JSON text; undefined: no body. */
  body?: string;
}
