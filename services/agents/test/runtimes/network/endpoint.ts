import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface EndpointRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Endpoint {
  /** http://127.0.0.1:port, or https:// */
  url: string;
  /** All that have arrived. */
  requests: EndpointRequest[];
  /** Connections that are open now. */
  connections(): number;
  close(): Promise<void>;
}

/** Starts the endpoint of an http agent, which answers each request when its body has arrived. */
export async function startEndpoint(
  answer: (request: EndpointRequest, response: ServerResponse, socket: Socket) => void,
  tls?: ServerOptions,
): Promise<Endpoint> {
  const requests: EndpointRequest[] = [];
  const sockets = new Set<Socket>();
  const listener: RequestListener = (request, response) => {
    const parts: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const received = { path: request.url!, headers: request.headers, body: Buffer.concat(parts).toString() };
      requests.push(received);
      answer(received, response, request.socket);
    });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    connections: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers with this output. */
export const answerWith = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
