import { createServer, STATUS_CODES, type RequestListener, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ServiceError, type KnownReason } from 'platform/errors.ts';
import { newId } from 'platform/ids.ts';
import type { Log } from 'platform/log.ts';
import { addressFault } from 'platform/start-error.ts';
import { begin } from './begin.ts';
import { errorReply } from './errors.ts';
import type { GatewayRequest } from './exchange.ts';
import { STATIC_HEADERS } from './send.ts';

export interface HttpServerOptions {
  /** host:port */
  listen: string;
  corsOrigins: ReadonlySet<string>;
  /** For the headers alone, and again for the body. */
  timeoutMs: number;
  log: Log;
}
export interface HttpServer {
  /** host:port that it listens on. */
  address: string;
  /** Takes no new connection and lets running requests end, for at most graceMs. */
  drain(graceMs: number): Promise<void>;
}

const KEEP_ALIVE_MS = 65_000;
const SWEEP_MS = 50;

/** @throws StartError when the address cannot be bound */
export async function serveHttp(handle: RequestListener, { listen, corsOrigins, timeoutMs, log }: HttpServerOptions): Promise<HttpServer> {
  const lastReply = new WeakMap<Duplex, ServerResponse>();
  const onRequest: RequestListener = (req, res) => {
    lastReply.set(req.socket, res);
    const exchange = begin(req, corsOrigins);
    if (!server.listening) exchange.headers.connection = 'close';
    (req as GatewayRequest).exchange = exchange;
    handle(req, res);
  };
  const server = createServer({
    // find-route looks at the Host itself, so that its refusal is JSON, too
    requireHostHeader: false,
    headersTimeout: timeoutMs,
    requestTimeout: 2 * timeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeoutMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
  }, onRequest);
  // read-body says "100 Continue" when it wants the body
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('connect', (_req, socket) => socket.end(rawReply('METHOD_NOT_ALLOWED', log)));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || !mayAnswer(lastReply.get(socket))) socket.destroy();
    else socket.end(rawReply(reasonOf(error), log), () => socket.destroy());
  });
  const separator = listen.lastIndexOf(':');
  const host = listen.slice(0, separator);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressFault('gateway', listen, error)));
    server.listen(Number(listen.slice(separator + 1)), host.replace(/^\[|\]$/g, ''), resolve);
  });
  const { port } = server.address() as { port: number };
  return {
    address: `${host}:${port}`,
    drain: (graceMs) => new Promise((resolve) => {
      // close() drops what is idle now; what is busy now turns idle later
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
      const hard = setTimeout(() => server.closeAllConnections(), graceMs);
      server.close(() => {
        clearInterval(sweep);
        clearTimeout(hard);
        resolve();
      });
    }),
  };
}

/** An error of the protocol gets a reply only where none is under way: the last request is over, or its body is the fault. */
const mayAnswer = (last: ServerResponse | undefined): boolean =>
  !last || (last.req.complete ? last.writableFinished : !last.headersSent);

function reasonOf({ code }: NodeJS.ErrnoException): KnownReason {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW': return 'HEADERS_TOO_LARGE';
    case 'ERR_HTTP_REQUEST_TIMEOUT': return 'REQUEST_TIMEOUT';
    default: return 'INVALID_REQUEST';
  }
}

/** A whole reply as text, for a connection whose request could not be read. */
function rawReply(reason: KnownReason, log: Log): string {
  const requestId = newId();
  const message = reason === 'INVALID_REQUEST' ? 'The request is not valid HTTP' : undefined;
  const { status, headers, body = '' } = errorReply(new ServiceError(reason, message), requestId, log);
  const all = { ...STATIC_HEADERS, ...headers, 'x-request-id': requestId, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

