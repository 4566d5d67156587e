import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Place } from './connection-limits.ts';
import type { GatewayRequest } from './exchange.ts';

/** What a client may send of its next requests while one is unanswered; more waits in the kernel's buffers. */
const READ_AHEAD_BYTES = 65_536;
/**
 * The parser finds all requests in the bytes that it is given at once. So it is given pieces that end at the last end
 * of a head within so many bytes, or at the first one behind them: no more than some thirty requests fit in one, and no
 * body comes with its head.
 */
const PIECE_BYTES = 512;
/** Larger pieces would only make other connections wait: one may hold a chunk of a body for every six bytes. */
const MAX_PIECE_BYTES = 16_384;
/** So much is read and dropped of what the gateway will not use, so that a client that writes first reads its reply. */
export const LINGER_BYTES = 16 << 20;
const HEAD_END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/** One connection, whose requests are handled one at a time, in their order. */
export interface Connection {
  /** Replies not yet completely passed to the operating system, in order; only the first request has begun. */
  readonly replies: readonly ServerResponse[];
  /** The reply to the newest request. */
  last: ServerResponse | undefined;
  /** The bytes after the newest request are not a valid request; they are not read. */
  isBroken: boolean;
  /** Handles the request when the replies to those before it have been passed on. */
  handleInTurn(req: GatewayRequest, res: ServerResponse): void;
  /** The connection ends with the reply that is due, unless further requests have come already. */
  endWithReply(): void;
}

/**
 * Takes the place between a socket and its HTTP parser (ADR 18). The parser gets further bytes only when no request is
 * unanswered, and those of a body only when `exchange.startBody` has been called. Meanwhile the socket is paused as
 * soon as READ_AHEAD_BYTES are held; a paused socket does not tell that the client has left. Once a request has called
 * `exchange.watchClient`, further bytes are dropped instead, and the connection ends with the reply. So it does when a
 * request calls `exchange.dropRest`, and with the reply to a request that asks for an upgrade: node's parser stops
 * behind that one, and loses what it was given with it.
 * @param socket that node's HTTP server has just begun to serve
 * @param place which the connection keeps while a request is under way
 */
export function openConnection(
  socket: Socket,
  handle: (req: IncomingMessage, res: ServerResponse) => void,
  place?: Place,
): Connection {
  // node's own listener passes the bytes to the parser
  const [parse] = socket.listeners('data') as [(bytes: Buffer) => void];
  socket.removeListener('data', parse);
  socket.on('data', receive);

  // No Set: V8 keeps what it contained as long as one of its former tables stays in the old space (ADR 24).
  const replies: ServerResponse[] = [];
  let held: Buffer = NOTHING;
  let isParsing = false;
  let isBodyWanted = false;
  let isWatched = false;
  let isDropping = false;
  let isLast = false;
  let droppedBytes = 0;
  const connection: Connection = { replies, last: undefined, isBroken: false, handleInTurn, endWithReply };
  return connection;

  function receive(bytes: Buffer): void {
    if (connection.isBroken || isDropping) {
      droppedBytes += bytes.length;
      if (droppedBytes > LINGER_BYTES && !isWatched) socket.destroy();
      return;
    }
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
    parseNext();
    if (held.length > READ_AHEAD_BYTES) holdBack();
  }

  function parseNext(): void {
    if (isParsing) return;
    isParsing = true;
    while (held.length > 0 && mayParse()) {
      const piece = held.subarray(0, pieceEnd(held));
      held = held.subarray(piece.length);
      parse(piece);
    }
    isParsing = false;
  }

  function mayParse(): boolean {
    if (connection.isBroken || socket.destroyed || socket.writableEnded) return false;
    return replies.length === 0 || (replies.length === 1 && isBodyWanted && connection.last?.req.complete === false);
  }

  function holdBack(): void {
    if (isWatched) dropRest();
    else socket.pause();
  }

  function dropRest(): void {
    isDropping = true;
    held = NOTHING;
    for (const { req } of replies) endWith(req as GatewayRequest);
    if (replies.length === 0) socket.destroy();
    else socket.resume();
  }

  function endWith({ exchange }: GatewayRequest): void {
    exchange.headers.connection = 'close';
    // node would destroy the socket behind the reply, and a client that is still sending could lose it
    const end = (): void => void socket.end();
    socket.destroySoon = end;
  }

  function endWithReply(): void {
    const { last } = connection;
    if (held.length === 0 && last && replies.includes(last))
      (last.req as GatewayRequest).exchange.headers.connection = 'close';
  }

  function readOn(): void {
    parseNext();
    if (held.length <= READ_AHEAD_BYTES && socket.isPaused()) socket.resume();
  }

  function handleInTurn(req: GatewayRequest, res: ServerResponse): void {
    connection.last = res;
    replies.push(res);
    res.once('finish', () => finished(res));
    if (replies.length > 1) return;
    place?.beginWork();
    begin(req, res);
  }

  function startBody(): void {
    isBodyWanted = true;
    readOn();
  }

  function keepPlace(): void {
    place?.keep();
  }

  function watchClient(): void {
    isWatched = true;
    if (held.length > READ_AHEAD_BYTES) holdBack();
  }

  function begin(req: GatewayRequest, res: ServerResponse): void {
    isBodyWanted = false;
    req.exchange.startBody = startBody;
    req.exchange.dropRest = dropRest;
    req.exchange.keepPlace = keepPlace;
    req.exchange.watchClient = watchClient;
    // any case of it, because the parser knows more than one
    isLast = req.headers.upgrade !== undefined;
    if (isLast) endWith(req);
    handle(req, res);
  }

  function finished(res: ServerResponse): void {
    replies.splice(replies.indexOf(res), 1);
    if (replies.length === 0) place?.endWork();
    isWatched = false;
    if (isLast) {
      isDropping = true;
      held = NOTHING;
      socket.resume();
    }
    if (isDropping) socket.end();
    // requests that came together are begun one in a turn, so that other connections have theirs in between
    if (replies.length > 0 || held.length > 0) setImmediate(goOn);
    else goOn();
  }

  function goOn(): void {
    if (socket.destroyed || socket.writableEnded) return;
    const [next] = replies;
    // one that has been answered out of turn has an invalid body
    if (next && !next.headersSent) begin(next.req as GatewayRequest, next);
    readOn();
  }
}

function pieceEnd(bytes: Buffer): number {
  if (bytes.length <= PIECE_BYTES) return bytes.length;
  let end = bytes.lastIndexOf(HEAD_END, PIECE_BYTES - HEAD_END.length);
  if (end < 0) end = bytes.indexOf(HEAD_END);
  return Math.min(end < 0 ? bytes.length : end + HEAD_END.length, MAX_PIECE_BYTES);
}
