import type { IncomingMessage } from 'node:http';
import { unavailable } from 'platform/core/errors.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import type { ByteBudget } from '../http/byte-budget.ts';
import { NOBODY, type Policy } from '../http/exchange.ts';

/** What a reply is expected to need; few need more (bounded-read). */
export const EXPECTED_REPLY_BYTES = 65_536;

/** 503 for a client that reads its replies too slowly, or asks for too much at once. Nothing was done. */
export const overBudget = (cause: string): Error =>
  unavailable('Too many bytes of this client are waiting: read the open replies first', cause);

/**
 * Fourth policy. Acquires a permit for the bytes of the body and the reply, or rejects the request with 503. The
 * server takes it back when the reply has been passed on or the client has gone.
 */
export function makeAdmit(budget: ByteBudget, maxBodyBytes: number): Policy {
  return (req, _res, next) => {
    // the permits of its requests were given back when the connection closed
    if (req.socket.destroyed) return;
    const { principal: { organizationId, subject } = NOBODY, route } = req.exchange;
    const { takesBody, options } = route as ServiceRoute;
    const bodyBytes = takesBody ? bytesOfBody(req, options.maxBodyBytes || maxBodyBytes) : 0;
    const permit = budget.acquire(organizationId, subject, bodyBytes + EXPECTED_REPLY_BYTES);
    if (!permit) throw overBudget('no room for a request');
    req.exchange.permit = permit;
    next();
  };
}

/** At most maxBytes: read-body keeps nothing of a body that is larger. */
const bytesOfBody = ({ headers }: IncomingMessage, maxBytes: number): number =>
  headers['transfer-encoding'] === undefined ? Math.min(Number(headers['content-length'] ?? 0), maxBytes) : maxBytes;
