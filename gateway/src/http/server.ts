import { createServer, type RequestListener, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Log } from 'platform/core/log.ts';
import { addressFault } from 'platform/core/start-error.ts';
import { openConnection, type Connection } from './connection.ts';
import { makePlaces, type ConnectionLimits, type Place } from './connection-limits.ts';
import { drainConnections, type DrainTimes } from './drain.ts';
import { errorReply, idsOf, methodNotAllowed, replyOf } from './errors.ts';
import { beginExchange, type GatewayRequest } from './exchange.ts';
import { rawReply, sendReply } from './reply.ts';
import { watchReaders } from './slow-readers.ts';
import type { HttpMetrics } from './metrics.ts';
import type { Tls } from './tls.ts';

export interface HttpServerOptions {
  /** host:port */
  listen: string;
  corsOrigins: ReadonlySet<string>;
  /** Limit for the headers to arrive, and again for the body. */
  timeoutMs: number;
  /** A client that takes nothing of what is written for it is disconnected after this time. */
  stallMs: number;
  /** A new connection on which nothing arrives for this time is closed. */
  firstByteMs: number;
  connections: ConnectionLimits;
  /** Every verb of every route. */
  allow: readonly string[];
  /** Absent: without TLS. */
  tls?: Tls | undefined;
  metrics?: HttpMetrics | undefined;
  log: Log;
}
export interface HttpServer {
  /** host:port that it listens on. */
  address: string;
  drain(times: DrainTimes): Promise<void>;
}

/** An idle connection is kept for so long, as `Keep-Alive` says in every reply. */
export const KEEP_ALIVE_MS = 65_000;
/** And for so much longer, because timers of busy clients are late: a request on its way to a closed one would fail. */
const LATE_CLIENTS_MS = 60_000;

const TOO_MANY_CONNECTIONS = new ServiceError('UNAVAILABLE', 'Too many connections are open');
const REFUSAL_LOG_MS = 1_000;

/** @throws StartError when the address cannot be bound */
export async function serveHttp(
  handle: RequestListener,
  {
    listen,
    corsOrigins,
    timeoutMs,
    stallMs,
    firstByteMs,
    connections: limits,
    allow,
    tls,
    metrics,
    log,
  }: HttpServerOptions,
): Promise<HttpServer> {
  const connections = new Map<Socket, Connection>();
  const places = makePlaces(limits);
  let isLeaving = false;
  const onRequest: RequestListener = (req, res) => {
    const exchange = beginExchange(req, corsOrigins);
    (req as GatewayRequest).exchange = exchange;
    metrics?.began(req as GatewayRequest, res);
    res.once('finish', () => exchange.permit?.giveBack());
    (connections.get(req.socket) as Connection).handleInTurn(req as GatewayRequest, res);
  };
  const begin: RequestListener = (req, res) => {
    if (isLeaving) (req as GatewayRequest).exchange.headers.connection = 'close';
    handle(req, res);
  };
  const options: ServerOptions = {
    // find-route checks the Host header, so that the error is JSON
    requireHostHeader: false,
    headersTimeout: timeoutMs,
    requestTimeout: 2 * timeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeoutMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveTimeoutBuffer: LATE_CLIENTS_MS,
  };
  const server = tls ? serveTls(tls, options, firstByteMs) : createServer(options);
  server.on('request', onRequest);
  // read-body sends "100 Continue" once the request has passed the earlier policies
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  const take = (socket: Socket): Place | undefined => places.take(socket.remoteAddress ?? '', () => socket.destroy());
  const serve = (socket: Socket, place: Place | undefined): Connection => {
    const connection = openConnection(socket, begin, place);
    connections.set(socket, connection);
    const firstByteTimer = closeIfSilent(socket, firstByteMs);
    socket.once('close', () => {
      clearTimeout(firstByteTimer);
      connections.delete(socket);
      place?.giveBack();
      for (const { req } of connection.replies) {
        const { exchange } = req as GatewayRequest;
        exchange.permit?.giveBack();
        // during a drain the gateway and proxies close connections, too: the client has not gone
        if (!isLeaving) exchange.onClientGone?.();
      }
    });
    return connection;
  };
  if (tls) {
    const byPort = new Map<string, Place>();
    server.on('connection', (socket: Socket) => {
      const place = take(socket);
      // no handshake for one too many, so it gets no answer
      if (!place) {
        socket.destroy();
        logRefusal(socket);
        return;
      }
      const port = portOf(socket);
      byPort.set(port, place);
      socket.once('close', () => {
        byPort.delete(port);
        place.giveBack();
      });
    });
    server.on('secureConnection', (socket: Socket) => serve(socket, byPort.get(portOf(socket))));
  } else
    server.on('connection', (socket: Socket) => {
      const place = take(socket);
      const connection = serve(socket, place);
      if (!place) refuse(socket, connection);
    });

  let refusalLoggedAt = 0;
  /** Answers 503 instead of a request. */
  const refuse = (socket: Socket, connection: Connection): void => {
    connection.isBroken = true;
    const requestId = newId();
    socket.end(rawReply(replyOf(TOO_MANY_CONNECTIONS, requestId), requestId), () => socket.destroy());
    logRefusal(socket);
  };
  /** A flood of connections is logged once a second. */
  const logRefusal = ({ remoteAddress: address }: Socket): void => {
    metrics?.refused();
    if (Date.now() - refusalLoggedAt < REFUSAL_LOG_MS) return;
    refusalLoggedAt = Date.now();
    log.warn({ address, open: connections.size }, 'too many connections');
  };

  const answer = (res: ServerResponse, error: ServiceError): void => {
    const req = res.req as GatewayRequest;
    const reply = errorReply(error, idsOf(req.exchange), log);
    sendReply(req, res, { ...reply, headers: { ...reply.headers, connection: 'close' } }).catch(() => res.destroy());
  };
  /** Answers invalid bytes with an error and closes the connection, after the replies to the requests before them. */
  const rejectConnection = (socket: Socket, error: ServiceError): void => {
    const connection = connections.get(socket);
    if (!connection || connection.isBroken) return;
    connection.isBroken = true;
    const { last } = connection;
    const isBodyAtFault = last !== undefined && !last.req.complete;
    if (isBodyAtFault && !last.headersSent) answer(last, error);
    const end = (): void => {
      if (!socket.writable) return;
      const requestId = newId();
      const bytes = isBodyAtFault ? '' : rawReply(errorReply(error, { requestId }, log), requestId);
      socket.end(bytes, () => socket.destroy());
    };
    if (last && connection.replies.includes(last)) last.once('finish', end);
    else end();
  };
  server.on('connect', (_req, socket: Socket) => {
    // node removes its own error listener from this socket
    socket.on('error', () => socket.destroy());
    rejectConnection(socket, methodNotAllowed(allow));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else rejectConnection(socket, protocolError(error));
  });
  const separator = listen.lastIndexOf(':');
  const host = listen.slice(0, separator);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressFault('gateway', listen, error)));
    server.listen(Number(listen.slice(separator + 1)), host.replace(/^\[|\]$/g, ''), resolve);
  });
  metrics?.readConnections(() => connections.size);
  const stopWatching = watchReaders(() => connections.keys(), stallMs);
  const { port } = server.address() as { port: number };
  return {
    address: `${host}:${port}`,
    async drain(times) {
      isLeaving = true;
      await drainConnections({ server, connections, answer }, times);
      stopWatching();
    },
  };
}

/** TLS 1.2 or newer. New files of the certificate hold for new connections; open ones stay. */
function serveTls(tls: Tls, options: ServerOptions, handshakeTimeout: number): Server {
  const minVersion = 'TLSv1.2';
  const server: TlsServer = createTlsServer({
    ...options,
    ...tls.pair(),
    minVersion,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout,
  });
  tls.onRenewed((pair) => server.setSecureContext({ ...pair, minVersion }));
  // a failed handshake concerns nobody but its client
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/** What tells a client's connection from its others, before and after the TLS handshake. */
const portOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

function closeIfSilent(socket: Socket, afterMs: number): NodeJS.Timeout {
  let isSilent = true;
  socket.once('data', () => {
    isSilent = false;
  });
  return setTimeout(() => {
    // what arrived while this process was busy is read before the immediate runs
    setImmediate(() => {
      if (isSilent) socket.destroy();
    });
  }, afterMs).unref();
}

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
