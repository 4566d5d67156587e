import { ServiceError } from 'platform/core/errors.ts';
import { methodNotAllowed } from '../http/errors.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import { isHost, isRepeated } from '../http/request-headers.ts';
import { sendReply, type Reply } from '../http/reply.ts';
import type { RouteTable } from '../contract/routes.ts';

const PREFLIGHT_SECONDS = '600';

/** First policy. Unknown path: 404. Wrong verb: 405. Answers OPTIONS (204) and the routes of the gateway itself. */
export function makeFindRoute(table: RouteTable): Policy {
  return async (req, res, next) => {
    const { path, query } = splitTarget(req);
    if (path === '*' && req.method === 'OPTIONS') return sendReply(req, res, optionsReply(req, table.allow));
    const found = table.find(path);
    if (!found) throw new ServiceError('NOT_FOUND', undefined, { facts: { reference: '/reference' } });
    const { resource, values } = found;
    req.exchange.template = resource.template;
    if (req.method === 'OPTIONS') return sendReply(req, res, optionsReply(req, resource.allow));
    const route = resource.routes.get(req.method === 'HEAD' ? 'GET' : (req.method as string));
    if (!route) throw methodNotAllowed(resource.allow);
    if (route.kind === 'local') return sendReply(req, res, route.reply());
    req.exchange.route = route;
    req.exchange.query = query;
    req.exchange.pathValues = values.map(decodeSegment);
    return next();
  };
}

/** Path and query of the request target, which may also have the absolute form that proxies send. */
function splitTarget(req: GatewayRequest): { path: string; query: string } {
  requireHost(req);
  requireKnownCoding(req);
  const target = (req.url as string).replace(/^https?:\/\/[^/?#]*/i, '');
  const split = target.indexOf('?');
  return split < 0 ? { path: target, query: '' } : { path: target.slice(0, split), query: target.slice(split + 1) };
}

/** HTTP/1.0 knows no Host header; every other request has exactly one (RFC 9112, 3.2). */
function requireHost(req: GatewayRequest): void {
  const { host } = req.headers;
  if (host === undefined ? req.httpVersion !== '1.0' : !isHost(host))
    throw new ServiceError('INVALID_REQUEST', 'The Host header is missing or malformed');
  if (isRepeated(req, 'host')) throw new ServiceError('INVALID_REQUEST', 'The Host header is given more than once');
}

/** Node leaves other transfer codings in the body, and knows chunks also in HTTP/1.0 (RFC 9112, 6.1). */
function requireKnownCoding({ headers, httpVersion, exchange }: GatewayRequest): void {
  const { 'transfer-encoding': coding } = headers;
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion !== '1.0')) return;
  exchange.dropRest?.();
  throw new ServiceError('INVALID_REQUEST', 'The Transfer-Encoding must be chunked, in HTTP/1.1');
}

/**
 * A segment that cannot be decoded stays as it is: after authentication the service answers 404, as for any unknown id.
 */
function decodeSegment(segment: string): string {
  try {
    return segment.includes('%') ? decodeURIComponent(segment) : segment;
  } catch {
    return segment;
  }
}

function optionsReply(req: GatewayRequest, allow: readonly string[]): Reply {
  const methods = allow.join(', ');
  const isPreflight =
    req.exchange.headers['access-control-allow-origin'] !== undefined &&
    req.headers['access-control-request-method'] !== undefined;
  return {
    status: 204,
    headers: {
      allow: methods,
      ...(isPreflight && {
        'access-control-allow-methods': methods,
        'access-control-allow-headers':
          'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id',
        'access-control-max-age': PREFLIGHT_SECONDS,
      }),
    },
  };
}
