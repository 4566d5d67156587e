import type { RequestListener } from 'node:http';
import { isFault } from 'platform/core/errors.ts';
import { requestAttributes } from 'platform/rpc/interceptors/trace.ts';
import { inScope, isTracing, openSpan, scopeOfRequest } from 'platform/telemetry/traces.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import { NOBODY, type GatewayRequest } from './exchange.ts';

const MINUTE_MS = 60_000;

/**
 * Handles each request in its trace. A `traceparent` of the client names the trace; that it is sampled, too, is granted
 * so often in a minute, and otherwise decided by chance as for every request.
 */
export function traceRequests(handle: RequestListener, askedPerMinute: number): RequestListener {
  if (!isTracing()) return handle;
  const mayAsk = allowance(askedPerMinute);
  return (req, res) => {
    const { exchange } = req as GatewayRequest;
    const { traceparent } = req.headers;
    const scope = scopeOfRequest(typeof traceparent === 'string' ? traceparent : '', exchange.requestId, mayAsk);
    const method = req.method as string;
    const span = openSpan('server', method, { 'http.request.method': method }, scope);
    if (!span) return inScope(scope, () => handle(req, res));
    res.once('close', () => {
      const { route, principal, requestId } = exchange;
      const { template } = (route ?? {}) as Partial<ServiceRoute>;
      if (template !== undefined) span.rename(`${method} ${template}`);
      span.set({
        'http.route': template,
        // without a reply: the client had left
        'http.response.status_code': res.headersSent ? res.statusCode : undefined,
        'url.scheme': 'encrypted' in req.socket ? 'https' : 'http',
        ...requestAttributes(requestId, { kind: 'PRINCIPAL_KIND_UNSPECIFIED', ...NOBODY, ...principal }),
      });
      const status = exchange.endedWith ?? res.statusCode;
      if (res.headersSent && status >= 400) {
        const type = exchange.code ?? String(status);
        span.fail({ type, isFault: isFault(status, type) });
      }
      span.end();
    });
    return inScope(span.scope, () => handle(req, res));
  };
}

/** True so often in a minute. */
function allowance(perMinute: number): () => boolean {
  let left = perMinute;
  let since = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(perMinute, left + ((now - since) / MINUTE_MS) * perMinute);
    since = now;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}
