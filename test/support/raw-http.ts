import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Reply } from './request.ts';

/** Opens a connection on which a test writes its own bytes. */
export async function openSocket(baseUrl: string): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  // the server may answer and close the connection before it has read everything
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Reads one reply, up to the end of the connection. */
export async function readReply(socket: Socket): Promise<Reply> {
  const origin = `http://${socket.remoteAddress}:${socket.remotePort}`;
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  // not by `once` of events, which rejects when a write fails because the server has answered already
  await new Promise((resolve) => socket.once('close', resolve));
  const whole = Buffer.concat(chunks).toString();
  const split = whole.indexOf('\r\n\r\n');
  const [statusLine, ...lines] = whole.slice(0, split).split('\r\n') as [string, ...string[]];
  const text = whole.slice(split + 4);
  const headers = new Headers(
    lines.map(
      (line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()] as [string, string],
    ),
  );
  return {
    origin,
    status: Number(statusLine.split(' ')[1]),
    headers,
    text,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

/** Sends these lines as a request head, then the body, and reads the reply. */
export async function exchange(baseUrl: string, lines: readonly string[], body = ''): Promise<Reply> {
  const socket = await openSocket(baseUrl);
  const reply = readReply(socket);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  return reply;
}
