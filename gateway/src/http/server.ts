import { createServer, STATUS_CODES, type RequestListener, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Log } from 'platform/core/log.ts';
import { addressFault } from 'platform/core/start-error.ts';
import { errorReply, methodNotAllowed } from './errors.ts';
import { beginExchange, type GatewayRequest } from './exchange.ts';
import { sendReply, STATIC_HEADERS } from './reply.ts';

export interface HttpServerOptions {
  /** host:port */
  listen: string;
  corsOrigins: ReadonlySet<string>;
  /** Limit for the headers to arrive, and again for the body. */
  timeoutMs: number;
  /** Every verb of every route. */
  allow: readonly string[];
  log: Log;
}
export interface HttpServer {
  /** host:port that it listens on. */
  address: string;
  /** Stops accepting connections and waits up to graceMs for open requests; answers 504 to those still open then. */
  drain(graceMs: number): Promise<void>;
}

const KEEP_ALIVE_MS = 65_000;
const SWEEP_MS = 50;
/** After graceMs a drain answers the open requests; it waits this long until those replies are written. */
const FLUSH_MS = 1_000;

interface Connection {
  /** Replies not yet completely passed to the operating system, in the order of their requests. */
  replies: Set<ServerResponse>;
  /** The reply to the newest request. */
  last: ServerResponse | undefined;
  /** The bytes after the newest request are not a valid request. */
  isBroken: boolean;
}

/** @throws StartError when the address cannot be bound */
export async function serveHttp(
  handle: RequestListener,
  { listen, corsOrigins, timeoutMs, allow, log }: HttpServerOptions,
): Promise<HttpServer> {
  const connections = new Map<Duplex, Connection>();
  const onRequest: RequestListener = (req, res) => {
    const connection = connections.get(req.socket) as Connection;
    connection.last = res;
    connection.replies.add(res);
    res.once('finish', () => connection.replies.delete(res));
    const exchange = beginExchange(req, corsOrigins);
    if (!server.listening) exchange.headers.connection = 'close';
    (req as GatewayRequest).exchange = exchange;
    handle(req, res);
  };
  const server = createServer(
    {
      // find-route checks the Host header, so that the error is JSON
      requireHostHeader: false,
      headersTimeout: timeoutMs,
      requestTimeout: 2 * timeoutMs,
      connectionsCheckingInterval: Math.min(1_000, timeoutMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    onRequest,
  );
  // read-body sends "100 Continue" once the request has passed the earlier policies
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('connection', (socket: Duplex) => {
    const connection: Connection = { replies: new Set(), last: undefined, isBroken: false };
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      // during a drain the gateway and proxies close connections too, so a close does not mean that the client has gone
      if (server.listening) for (const { req } of connection.replies) (req as GatewayRequest).exchange.onClientGone?.();
    });
  });

  const answer = (res: ServerResponse, error: ServiceError): void => {
    const req = res.req as GatewayRequest;
    const reply = errorReply(error, req.exchange.requestId, log);
    const isLast = connections.get(req.socket)?.last === res;
    sendReply(req, res, { ...reply, headers: { ...reply.headers, ...(isLast && { connection: 'close' }) } }).catch(() =>
      res.destroy(),
    );
  };
  /** Answers invalid bytes with an error and closes the connection, after the replies to the requests before them. */
  const rejectConnection = (socket: Duplex, error: ServiceError): void => {
    const connection = connections.get(socket);
    if (!connection || connection.isBroken) return;
    connection.isBroken = true;
    const { last } = connection;
    const isBodyAtFault = last !== undefined && !last.req.complete;
    if (isBodyAtFault && !last.writableEnded) answer(last, error);
    const end = (): void => {
      if (socket.writable) socket.end(isBodyAtFault ? '' : rawReply(error, log), () => socket.destroy());
    };
    if (last && connection.replies.has(last)) last.once('finish', end);
    else end();
  };
  server.on('connect', (_req, socket) => {
    // node removes its own error listener from this socket
    socket.on('error', () => socket.destroy());
    rejectConnection(socket, methodNotAllowed(allow));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else rejectConnection(socket, protocolError(error));
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
    async drain(graceMs) {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      // close() closes only the connections that are idle now, not those that become idle later
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
      if (!(await settledWithin(graceMs, closed))) {
        const open = [...connections.values()].flatMap(({ replies }) => [...replies]);
        const written = open.map(
          (res) =>
            new Promise((resolve) => {
              res.once('close', resolve);
            }),
        );
        for (const res of open)
          if (!res.writableEnded)
            answer(res, new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: 'the gateway stopped' }));
        await settledWithin(FLUSH_MS, Promise.all(written));
        for (const socket of connections.keys()) socket.destroy();
        await closed;
      }
      clearInterval(sweep);
    },
  };
}

const settledWithin = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), delay(ms, false, { ref: false })]);

function protocolError({ code }: NodeJS.ErrnoException): ServiceError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ServiceError('HEADERS_TOO_LARGE');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ServiceError('REQUEST_TIMEOUT');
    default:
      return new ServiceError('INVALID_REQUEST', 'The request is not valid HTTP');
  }
}

/** A complete HTTP response as text, for a request that node could not parse. */
function rawReply(error: ServiceError, log: Log): string {
  const requestId = newId();
  const { status, headers, body = '' } = errorReply(error, requestId, log);
  const all = {
    ...STATIC_HEADERS,
    ...headers,
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
