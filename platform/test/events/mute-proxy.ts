import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

export interface MuteProxy {
  readonly port: number;
  /** From here on the server hears and does everything, and nobody hears its answers; connections stay open, and new ones are accepted. */
  mute(): void;
  /** Connections that lost an answer end; new ones are as before. */
  unmute(): void;
  close(): void;
}

/** Between a client and the server at `target`. `hear` is told of what comes from each connection. */
export async function muteProxy(
  target: number,
  hear?: (bytes: Buffer, connection: object) => void,
): Promise<MuteProxy> {
  let muted = false;
  const endings = new Set<() => void>();
  const spoilt = new Set<() => void>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      endings.delete(end);
      spoilt.delete(end);
    };
    endings.add(end);
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.on('data', (request: Buffer) => {
      hear?.(request, client);
      upstream.write(request);
    });
    upstream.on('data', (answer: Buffer) => void (muted || spoilt.has(end) ? spoilt.add(end) : client.write(answer)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    mute: () => void (muted = true),
    unmute() {
      muted = false;
      for (const end of [...spoilt]) end();
    },
    close() {
      server.close();
      for (const end of [...endings]) end();
    },
  };
}
