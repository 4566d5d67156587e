import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from 'platform/core/errors.ts';
import type { Connection } from './connection.ts';

/** All are counted from the begin of the drain. */
export interface DrainTimes {
  /** New connections are taken for so long. */
  listenMs: number;
  /** Idle connections are left to their clients for so long. */
  idleMs: number;
  /** Open requests may take so long; those still open then are answered 504. */
  graceMs: number;
}

interface Draining {
  server: Server;
  connections: ReadonlyMap<Socket, Connection>;
  /** Answers a request in place of the pipeline. */
  answer(res: ServerResponse, error: ServiceError): void;
}

const SWEEP_MS = 50;
/** After graceMs a drain answers the open requests; it waits this long until those replies are written. */
const FLUSH_MS = 1_000;

/**
 * Lets clients leave. Each connection ends with its next reply, which says so. Only an idle connection cannot be closed
 * without a risk: a request may be on its way. So it stays until its client has used or closed it, or until `idleMs`.
 */
export async function drainConnections({ server, connections, answer }: Draining, times: DrainTimes): Promise<void> {
  const { listenMs, idleMs, graceMs } = times;
  const startedMs = performance.now();
  const leftMs = (ms: number): number => Math.max(0, Math.min(ms, graceMs) - (performance.now() - startedMs));
  for (const connection of connections.values()) connection.endWithReply();
  if (listenMs > 0) await delay(leftMs(listenMs));
  // that of node:http would also close idle connections
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  // what had arrived while this process was busy is read before an immediate runs
  const sweep = setInterval(() => setImmediate(() => leftMs(idleMs) === 0 && closeIdle(server, connections)), SWEEP_MS);
  if (!(await settledWithin(leftMs(graceMs), closed))) {
    // the requests behind the first of a connection were not begun, so they need no answer
    const open = [...connections.values()].flatMap(({ replies }) => replies.slice(0, 1));
    const written = open.map(
      (res) =>
        new Promise((resolve) => {
          res.once('close', resolve);
        }),
    );
    for (const res of open) {
      if (res.headersSent) continue;
      // no service has seen a request whose body has not come
      const reason = res.req.complete ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE';
      answer(res, new ServiceError(reason, undefined, { cause: 'the gateway stopped' }));
    }
    await settledWithin(FLUSH_MS, Promise.all(written));
    for (const socket of connections.keys()) socket.destroy();
    await closed;
  }
  clearInterval(sweep);
  // ends the timers of node:http
  server.close();
}

/** Node takes a reply whose last bytes wait for the client for complete, and would cut it off. */
function closeIdle(server: Server, connections: ReadonlyMap<Socket, Connection>): void {
  const isWriting = ({ replies }: Connection): boolean => replies.some(({ writableEnded }) => writableEnded);
  if (![...connections.values()].some(isWriting)) server.closeIdleConnections();
}

const settledWithin = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), delay(ms, false, { ref: false })]);
