import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /**
   * From now on requests still reach the server, and its answers are dropped. Connections stay open, and new ones are
   * accepted.
   */
  mute(): void;
  /** Closes the connections that lost an answer; all others work again. */
  unmute(): void;
  close(): void;
}

/**
 * A TCP proxy in front of the server on the port `target`.
 * @param onRequest called with what a client sends, and its connection
 */
export async function tcpProxy(
  target: number,
  onRequest?: (bytes: Buffer, connection: Socket) => void,
): Promise<TcpProxy> {
  let muted = false;
  const open = new Set<() => void>();
  const lostAnswer = new Set<() => void>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      open.delete(end);
      lostAnswer.delete(end);
    };
    open.add(end);
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.on('data', (request: Buffer) => {
      onRequest?.(request, client);
      upstream.write(request);
    });
    upstream.on(
      'data',
      (answer: Buffer) => void (muted || lostAnswer.has(end) ? lostAnswer.add(end) : client.write(answer)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    mute: () => void (muted = true),
    unmute() {
      muted = false;
      for (const end of [...lostAnswer]) end();
    },
    close() {
      server.close();
      for (const end of [...open]) end();
    },
  };
}
