import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from 'platform/core/principal.ts';
import type { Route } from '../contract/routes.ts';
import type { RequestParts } from '../contract/transcode-request.ts';

/** What the policies learn of one request, each for the next ones. */
export interface Exchange extends RequestParts {
  requestId: string;
  /** Headers of every reply to this request, errors included. */
  headers: Record<string, string>;
  /** Set by find-route. */
  route?: Route;
  /** Set by authenticate, unless the route is public. */
  principal?: Principal;
  /** Set by call-service when its call goes with its client. */
  onClientGone?: () => void;
}

export interface GatewayRequest extends IncomingMessage {
  exchange: Exchange;
}

/** Plain Express middleware; it may be async, and what it throws becomes the reply. */
export type Policy = (req: GatewayRequest, res: ServerResponse, next: () => void) => void | Promise<void>;
