import { connect, type Socket } from 'node:net';

export interface Answer {
  status: number;
  body: string;
}
/** host and port of a server. */
export interface Address {
  host: string;
  port: number;
}
/** One keep-alive connection of HTTP/1.1, which carries one request at a time. */
export interface HttpConnection {
  /**
   * Sends a request and resolves when the whole answer has arrived. Connects first if there is no connection.
   * @param request head and body as they go to the server
   * @throws Error when the connection is lost before that
   */
  send(request: string): Promise<Answer>;
  close(): void;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

/**
 * Our own client rather than autocannon, which drops the requests under way when a round ends: their changes could not
 * be counted. It reads what the systems of these benchmarks answer: Content-Length or chunks, no trailers.
 */
export function openHttpConnection({ host, port }: Address): HttpConnection {
  let socket: Socket | undefined;
  let received: Buffer = EMPTY;
  let waiting: Waiting | undefined;

  function lose(error: Error): void {
    socket?.destroy();
    socket = undefined;
    received = EMPTY;
    const { reject } = waiting ?? {};
    waiting = undefined;
    reject?.(error);
  }

  function connected(): Socket {
    if (socket) return socket;
    const opened = (socket = connect({ host, port, noDelay: true }));
    opened.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      read();
    });
    opened.on('error', (error) => socket === opened && lose(error));
    opened.on('close', () => socket === opened && lose(new Error('the server closed the connection')));
    return opened;
  }

  function read(): void {
    const answer = readAnswer(received);
    if (!answer || !waiting) return;
    const { resolve } = waiting;
    waiting = undefined;
    received = EMPTY;
    if (answer.closes) {
      socket?.destroy();
      socket = undefined;
    }
    resolve(answer);
  }

  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        connected().write(request);
      }),
    close() {
      socket?.destroy();
      socket = undefined;
    },
  };
}

const EMPTY = Buffer.alloc(0);
const END_OF_HEAD = '\r\n\r\n';

/** @returns undefined as long as the answer is not complete. */
export function readAnswer(received: Buffer): (Answer & { closes: boolean }) | undefined {
  const end = received.indexOf(END_OF_HEAD);
  if (end < 0) return undefined;
  const head = received.toString('latin1', 0, end).toLowerCase();
  const status = Number(head.slice(9, 12));
  const closes = head.includes('\r\nconnection: close');
  const from = end + END_OF_HEAD.length;
  const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
  if (length === undefined && head.includes('\r\ntransfer-encoding: chunked')) {
    const body = readChunks(received, from);
    return body === undefined ? undefined : { status, closes, body };
  }
  const to = from + Number(length ?? 0);
  return received.length < to ? undefined : { status, closes, body: received.toString('utf8', from, to) };
}

/** RFC 9112, section 7.1. */
function readChunks(received: Buffer, from: number): string | undefined {
  const chunks: Buffer[] = [];
  for (let at = from; ;) {
    const endOfLine = received.indexOf('\r\n', at);
    if (endOfLine < 0) return undefined;
    const size = Number.parseInt(received.toString('latin1', at, endOfLine), 16);
    const next = endOfLine + 2 + size + 2;
    if (received.length < next) return undefined;
    if (size === 0) return Buffer.concat(chunks).toString();
    chunks.push(received.subarray(endOfLine + 2, endOfLine + 2 + size));
    at = next;
  }
}
