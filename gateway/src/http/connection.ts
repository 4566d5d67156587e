import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayRequest } from './exchange.ts';

/** What a client may send of its next requests while one is unanswered; more waits in the kernel's buffers. */
const READ_AHEAD_BYTES = 65_536;
/**
 * The parser finds all requests in the bytes that it is given at once. So it is given pieces that end at the first end
 * of a head after this many bytes: no more than some thirty requests fit in one, and a large body is one piece.
 */
const PIECE_BYTES = 512;
const HEAD_END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/** One connection, whose requests are handled one at a time, in their order. */
export interface Connection {
  /** Replies not yet completely passed to the operating system, in order; only the first request has begun. */
  readonly replies: ReadonlySet<ServerResponse>;
  /** The reply to the newest request. */
  last: ServerResponse | undefined;
  /** The bytes after the newest request are not a valid request; they are not read. */
  isBroken: boolean;
  /** Handles the request when the replies to those before it have been passed on. */
  handleInTurn(req: GatewayRequest, res: ServerResponse): void;
}

/**
 * Takes the place between a socket and its HTTP parser (ADR 18). The parser gets further bytes only when no request is
 * unanswered. Meanwhile the socket is paused as soon as READ_AHEAD_BYTES are held; a paused socket does not tell that
 * the client has left. Once a request has called `exchange.watchClient`, further bytes are dropped instead, and the
 * connection ends with the reply.
 * @param socket that node's HTTP server has just begun to serve
 */
export function openConnection(
  socket: Socket,
  handle: (req: IncomingMessage, res: ServerResponse) => void,
): Connection {
  // node's own listener passes the bytes to the parser
  const [parse] = socket.listeners('data') as [(bytes: Buffer) => void];
  socket.removeListener('data', parse);
  socket.on('data', receive);

  const replies = new Set<ServerResponse>();
  let held: Buffer = NOTHING;
  let isParsing = false;
  let isWatched = false;
  let hasDropped = false;
  const connection: Connection = { replies, last: undefined, isBroken: false, handleInTurn };
  return connection;

  function receive(bytes: Buffer): void {
    if (connection.isBroken || hasDropped) return;
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
    // the rest of a body that the request under way needs
    return replies.size === 0 || (replies.size === 1 && connection.last?.req.complete === false);
  }

  function holdBack(): void {
    if (!isWatched) {
      socket.pause();
      return;
    }
    hasDropped = true;
    held = NOTHING;
    for (const { req } of replies) (req as GatewayRequest).exchange.headers.connection = 'close';
    socket.resume();
  }

  function handleInTurn(req: GatewayRequest, res: ServerResponse): void {
    connection.last = res;
    replies.add(res);
    res.once('finish', () => finished(res));
    if (replies.size === 1) begin(req, res);
  }

  function begin(req: GatewayRequest, res: ServerResponse): void {
    req.exchange.watchClient = () => {
      isWatched = true;
      if (held.length > READ_AHEAD_BYTES) holdBack();
    };
    handle(req, res);
  }

  function finished(res: ServerResponse): void {
    replies.delete(res);
    isWatched = false;
    if (hasDropped) socket.end();
    if (socket.destroyed || socket.writableEnded) return;
    const [next] = replies;
    // one that has been answered out of turn has an invalid body
    if (next && !next.headersSent) begin(next.req as GatewayRequest, next);
    parseNext();
    if (held.length <= READ_AHEAD_BYTES && socket.isPaused()) socket.resume();
  }
}

function pieceEnd(bytes: Buffer): number {
  if (bytes.length <= PIECE_BYTES) return bytes.length;
  const end = bytes.indexOf(HEAD_END, PIECE_BYTES - HEAD_END.length);
  return end < 0 ? bytes.length : end + HEAD_END.length;
}
