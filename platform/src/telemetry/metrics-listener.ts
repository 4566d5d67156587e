import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../core/log.ts';
import { addressFault } from '../core/start-error.ts';

/** More than one Prometheus and a person need; further connections are closed at once. */
const MAX_CONNECTIONS = 16;
/** For the head of a request to arrive, and for the next request of a connection. */
const REQUEST_MS = 5_000;
/** A connection on which nothing moves is closed, also while its scrape is rendered. */
const SILENT_MS = 15_000;

/**
 * Answers GET /metrics and nothing else. It has a server of its own, so that neither clients nor certificates are
 * concerned, and a slow or hostile scraper takes little from requests.
 * @throws StartError when the address cannot be listened on
 */
export async function serveMetrics(
  name: string,
  listen: string,
  text: () => Promise<string>,
  log: Log,
): Promise<{ address: string; close(): Promise<void> }> {
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // a body is not read
    if ('content-length' in req.headers || 'transfer-encoding' in req.headers) res.setHeader('connection', 'close');
    const [path] = (req.url ?? '').split('?', 1);
    if (path !== '/metrics') return void res.writeHead(404, { 'content-length': 0 }).end();
    if (req.method !== 'GET') return void res.writeHead(405, { 'content-length': 0, allow: 'GET' }).end();
    const body = Buffer.from(await text());
    res.writeHead(200, {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'content-length': body.length,
      'cache-control': 'no-store',
    });
    res.end(body);
  }
  const server = createServer(
    {
      maxHeaderSize: 8_192,
      headersTimeout: REQUEST_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: REQUEST_MS,
      connectionsCheckingInterval: 1_000,
    },
    (req, res) =>
      void answer(req, res).catch((error: unknown) => {
        log.error({ error }, 'a scrape failed');
        res.destroy();
      }),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(SILENT_MS);
  const separator = listen.lastIndexOf(':');
  const host = listen.slice(0, separator);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressFault(name, listen, error, 'METRICS_LISTEN')));
    server.listen(Number(listen.slice(separator + 1)), host.replace(/^\[|\]$/g, ''), resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: `${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
