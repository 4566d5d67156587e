import type { IncomingMessage } from 'node:http';
import { unavailable } from 'platform/core/errors.ts';
import type { ServiceRoute } from '../contract/routes.ts';
import type { Policy } from '../http/exchange.ts';
import type { Room } from '../http/room.ts';

/** What a reply is expected to need; few need more (call-service). */
export const EXPECTED_REPLY_BYTES = 65_536;
const NOBODY = { organizationId: '', subject: '' };

/** 503 for a client that reads its replies too slowly, or asks for too much at once. Nothing was done. */
export const noRoom = (cause: string): Error =>
  unavailable('Too many bytes of this client are waiting: read the open replies first', cause);

/**
 * Third policy. Reserves memory for the body and the reply, and rejects the request with 503 if there is none. The
 * server releases it when the reply has been passed on or the client has gone.
 */
export function makeAdmit(room: Room, maxBodyBytes: number): Policy {
  return (req, _res, next) => {
    const { principal = NOBODY, route } = req.exchange;
    const { takesBody, options } = route as ServiceRoute;
    const bodyBytes = takesBody ? bytesOfBody(req, options.maxBodyBytes || maxBodyBytes) : 0;
    const reservation = room.reserve(principal, bodyBytes + EXPECTED_REPLY_BYTES);
    if (!reservation) throw noRoom('no room for a request');
    req.exchange.reservation = reservation;
    next();
  };
}

/** At most maxBytes: read-body keeps nothing of a body that is larger. */
const bytesOfBody = ({ headers }: IncomingMessage, maxBytes: number): number =>
  headers['transfer-encoding'] === undefined ? Math.min(Number(headers['content-length'] ?? 0), maxBytes) : maxBytes;
