import type { ServerResponse } from 'node:http';
import { CALL_BUCKETS, counter, gauge, histogram, reading, type Metrics } from 'platform/telemetry/metrics.ts';
import { PEER_METRICS } from 'platform/service/metrics.ts';
import type { GatewayRequest } from './exchange.ts';

const REQUESTS = counter(
  'agentmemory_http_requests_total',
  'Requests that were answered; code: ok, the code of the error, or client_gone for one whose client left before. ' +
    'A route is a template of a path, "none" for a path that has none.',
  ['route', 'verb', 'status', 'code'],
);
const REQUEST_SECONDS = histogram(
  'agentmemory_http_request_seconds',
  'How long a request took from its head to the last byte of its reply.',
  ['route', 'verb'],
  [...CALL_BUCKETS, 30, 60, 300],
);
const IN_FLIGHT = gauge('agentmemory_http_requests_in_flight', 'Requests that are not answered yet.');
const CONNECTIONS = gauge('agentmemory_http_connections', 'Open connections of clients.');
const REFUSED = counter('agentmemory_http_connections_refused_total', 'Connections that were one too many.');
const LIMITED = counter(
  'agentmemory_rate_denials_total',
  'Requests over a limit, by whose limit it was: token, organization or address.',
  ['limit'],
);
const AUTHENTICATION_SECONDS = histogram(
  'agentmemory_authentication_seconds',
  'How old the decision of auth about a token was when it was used. A token that is revoked is accepted no longer than ' +
    'that.',
  [],
  CALL_BUCKETS,
);

export const HTTP_METRICS = [
  ...[REQUESTS, REQUEST_SECONDS, IN_FLIGHT, CONNECTIONS, REFUSED, LIMITED, AUTHENTICATION_SECONDS],
  ...PEER_METRICS,
] as const;

/** What the parts of the gateway tell. */
export interface HttpMetrics {
  began(req: GatewayRequest, res: ServerResponse): void;
  refused(): void;
  limited(limit: string): void;
  authenticated(tookMs: number): void;
  readConnections(open: () => number): void;
}

const VERBS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Undefined when metrics are off: a request then costs nothing more. */
export function countRequests(metrics: Metrics): HttpMetrics | undefined {
  if (!metrics.isOn) return undefined;
  let inFlight = 0;
  metrics.read(() => [reading(IN_FLIGHT, {}, inFlight)]);
  return {
    began(req, res) {
      const startedAt = performance.now();
      inFlight += 1;
      res.once('close', () => {
        inFlight -= 1;
        const { template: route = 'none', code = 'ok' } = req.exchange;
        // a client may send any word
        const verb = VERBS.has(req.method!) ? req.method! : 'other';
        const outcome = res.writableFinished
          ? { status: String(res.statusCode), code }
          : { status: '499', code: 'client_gone' };
        metrics.add(REQUESTS, { route, verb, ...outcome });
        metrics.observe(REQUEST_SECONDS, { route, verb }, (performance.now() - startedAt) / 1e3);
      });
    },
    refused: () => metrics.add(REFUSED, {}),
    limited: (limit) => metrics.add(LIMITED, { limit }),
    authenticated: (tookMs) => metrics.observe(AUTHENTICATION_SECONDS, {}, tookMs / 1e3),
    readConnections: (open) => metrics.read(() => [reading(CONNECTIONS, {}, open())]),
  };
}
