import type { Caller } from 'platform/rpc/client.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { baseUrl, type UrlSettings } from '../http/base-url.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import { send } from '../http/send.ts';
import { parseQuery } from '../contract/transcode-request.ts';
import type { Answer, AnswerHeader } from '../contract/transcode-response.ts';

export interface CallServiceDeps {
  /** By audience. */
  callers: ReadonlyMap<string, Caller>;
  /** Calls under way; the process waits for them before it stops. */
  running: Set<Promise<unknown>>;
  urls: UrlSettings;
}

const NOBODY = servicePrincipal('gateway');

/** Last policy: request -> message -> service -> reply. A client that goes away cancels its call, unless the work outlives it. */
export function makeCallService({ callers, running, urls }: CallServiceDeps): Policy {
  return async (req, res) => {
    const { exchange } = req;
    const { audience, method, policy, toMessage } = exchange.route as ServiceRoute;
    const message = toMessage(req, exchange);
    const aborter = new AbortController();
    const outlives = policy.outlivesClientWith !== '' && message[policy.outlivesClientWith] !== undefined;
    if (req.socket.destroyed || res.writableEnded) return;
    if (!outlives) exchange.onClientGone = () => aborter.abort();

    const call = (callers.get(audience) as Caller)(method, message, {
      principal: exchange.principal ?? NOBODY,
      requestId: exchange.requestId,
      signal: aborter.signal,
    });
    running.add(call);
    const answer = (await call.catch(refusal).finally(() => running.delete(call))) as Answer;
    await send(req, res, { status: answer.status, headers: headersOf(answer.headers, req, urls), body: answer.body });
  };
}

/** A service that does not accept this gateway's identity is a fault of the platform, never of the client's token. */
function refusal(error: unknown): never {
  if (error instanceof ServiceError && error.reason === 'UNAUTHENTICATED')
    throw new ServiceError('INTERNAL', undefined, { cause: error });
  throw error;
}

function headersOf(
  headers: readonly AnswerHeader[],
  req: GatewayRequest,
  urls: UrlSettings,
): Record<string, string> | undefined {
  if (headers.length === 0) return undefined;
  const links = headers
    .filter(({ kind }) => kind === 'link')
    .map(({ name, value }) => `<${pageUrl(req, urls, value)}>; rel="${name}"`);
  const others = headers
    .filter(({ kind }) => kind !== 'link')
    .map(({ kind, name, value }) => [name.toLowerCase(), kind === 'url' ? baseUrl(req, urls) + value : value]);
  return { ...Object.fromEntries(others), ...(links.length > 0 && { link: links.join(', ') }) };
}

/** The URL of this request with another cursor. */
function pageUrl(req: GatewayRequest, urls: UrlSettings, cursor: string): string {
  const parameters = new URLSearchParams(parseQuery(req.exchange.query));
  parameters.set('cursor', cursor);
  const [path] = (req.url as string).replace(/^https?:\/\/[^/?#]*/i, '').split('?', 1) as [string];
  return `${baseUrl(req, urls)}${path}?${parameters}`;
}
