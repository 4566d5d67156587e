import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface LossyProxy {
  readonly port: number;
  /** The answers to the next `times` requests that name this command get lost: the server has done it, its connection ends, after `meanwhile`. */
  loseAnswerTo(command: string, times: number, meanwhile?: () => Promise<void>): void;
  /** Answers lost so far. */
  lost(): number;
  /** From the next lost answer on, nobody listens. */
  dieWithNext(): void;
  close(): Promise<void>;
}

/** Between a driver and MongoDB at `target`; use it with directConnection=true. */
export async function lossyProxy(target: number): Promise<LossyProxy> {
  let losing = { command: '', times: 0, meanwhile: async () => {} };
  let lost = 0;
  let mortal = false;
  const sockets = new Set<Socket>();
  const endAll = (): void => sockets.forEach((socket) => socket.destroy());

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let doomed = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (request: Buffer) => {
      if (losing.times > 0 && request.includes(`${losing.command}\0`)) {
        losing.times--;
        doomed = true;
      }
      upstream.write(request);
    });
    upstream.on('data', async (answer) => {
      if (!doomed) return void client.write(answer);
      lost++;
      await losing.meanwhile();
      client.destroy();
      if (!mortal) return;
      server.close();
      endAll();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    loseAnswerTo(command, times, meanwhile = async () => {}) {
      losing = { command, times, meanwhile };
    },
    lost: () => lost,
    dieWithNext() {
      mortal = true;
    },
    async close() {
      server.close();
      endAll();
    },
  };
}
