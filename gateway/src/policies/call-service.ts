import type { AnyCall, CallableMethod } from 'platform/rpc/client.ts';
import type { OpenWork } from 'platform/rpc/open-work.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { baseUrl, type UrlSettings } from '../http/base-url.ts';
import type { Permit } from '../http/byte-budget.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import { sendReply } from '../http/reply.ts';
import { makeBoundedRead } from './bounded-read.ts';
import { isWithheld, withholding, withoutStored } from './withhold.ts';
import { MAX_EVENT_BYTES, streamReplies, type StreamDeps } from './stream-replies.ts';
import { parseQuery } from '../contract/transcode-request.ts';
import type { ResponseHeader, TranscodedResponse } from '../contract/transcode-response.ts';

export interface CallServiceDeps {
  /** By audience. */
  calls: ReadonlyMap<string, AnyCall>;
  /** The process waits for the calls under way before it stops. */
  work: OpenWork;
  urls: UrlSettings;
  streams: StreamDeps;
}

type StreamingMethod = CallableMethod & { responseStream: true };
const SELF = servicePrincipal('gateway');

/**
 * Last policy: calls the service with the request message and replies with its response. A client that disconnects
 * cancels its call, unless the request has the field that lets the work continue without the client.
 */
export function makeCallService({ calls, work, urls, streams }: CallServiceDeps): Policy {
  const read = makeBoundedRead();
  /** Reads under way that need no token: all who ask meanwhile share one, so that a flood costs no more. */
  const shared = new Map<string, Promise<unknown>>();
  const share = (key: string, call: () => Promise<unknown>): Promise<unknown> => {
    const known = shared.get(key) ?? call().finally(() => shared.delete(key));
    shared.set(key, known);
    return known;
  };
  return async (req, res) => {
    const { exchange } = req;
    const route = exchange.route as ServiceRoute;
    const { kind, audience, options, toMessage } = route;
    const message = toMessage(req, exchange);
    const withheld = isWithheld(route, exchange.principal);
    const method = withheld ? withholding(route, message) : route.method;
    const aborter = new AbortController();
    const outlivesClient = options.outlivesClientWith !== '' && message[options.outlivesClientWith] !== undefined;
    if (req.socket.destroyed || res.writableEnded) return;
    const cancel = (): void => aborter.abort();
    if (!outlivesClient) exchange.onClientGone = cancel;
    if (!outlivesClient && options.outlivesClientWith !== '') exchange.watchClient?.();
    exchange.body = undefined;

    const service = calls.get(audience) as AnyCall;
    const ofAll = { principal: exchange.principal ?? SELF, requestId: exchange.requestId };
    const ofClient = { ...ofAll, signal: aborter.signal };
    if (kind === 'stream') {
      const replies = service(method as StreamingMethod, message, { ...ofClient, maxReplyBytes: MAX_EVENT_BYTES });
      return work.during(() => streamReplies(req, res, withOwnFaults(replies), cancel, streams));
    }
    const makeCall = (): Promise<unknown> => {
      // what a write has done must be told, however large the reply is
      if (!isRead(req)) return service(method, message, ofClient);
      if (!options.public) return read(service, method, message, ofClient, exchange.permit as Permit);
      return share(`${method.path} ${JSON.stringify(message)}`, () => service(method, message, ofAll));
    };
    const { status, headers, body } = (await work
      .during(makeCall)
      .catch((error: unknown) => rethrow(withheld ? withoutStored(error) : error))) as TranscodedResponse;
    await sendReply(req, res, { status, headers: headersOf(headers, req, urls), body });
  };
}

const isRead = ({ method }: GatewayRequest): boolean => method === 'GET' || method === 'HEAD';

/**
 * UNAUTHENTICATED from a service means that it rejected the gateway's identity, not the client's token: 500, never 401.
 */
function rethrow(error: unknown): never {
  if (error instanceof ServiceError && error.reason === 'UNAUTHENTICATED')
    throw new ServiceError('INTERNAL', undefined, { cause: error });
  throw error;
}

async function* withOwnFaults(replies: AsyncIterable<object>): AsyncGenerator<TranscodedResponse> {
  try {
    yield* replies as AsyncIterable<TranscodedResponse>;
  } catch (error) {
    rethrow(error);
  }
}

function headersOf(
  headers: readonly ResponseHeader[],
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
  parameters.delete('page');
  parameters.set('cursor', cursor);
  const [path] = (req.url as string).replace(/^https?:\/\/[^/?#]*/i, '').split('?', 1) as [string];
  return `${baseUrl(req, urls)}${path}?${parameters}`;
}
