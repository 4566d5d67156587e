import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface LossyProxy {
  readonly port: number;
  /**
   * Loses the answers to the next `times` requests with this command: the server has executed it, `meanwhile` runs,
   * then the connection closes.
   */
  loseAnswerTo(command: string, times: number, meanwhile?: () => Promise<void>): void;
  /** Answers lost so far. */
  lost(): number;
  /** Makes the proxy stop listening at the next lost answer. */
  stopAtNextLoss(): void;
  close(): Promise<void>;
}

/** A TCP proxy in front of MongoDB on the port `target`. The driver must use it with directConnection=true. */
export async function lossyProxy(target: number): Promise<LossyProxy> {
  let losing = { command: '', times: 0, meanwhile: async () => {} };
  let lost = 0;
  let stopsAtNextLoss = false;
  const sockets = new Set<Socket>();
  const destroyAll = (): void => sockets.forEach((socket) => socket.destroy());

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let losesAnswer = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        // also when `meanwhile` ends the server, the client learns of it only after that
        if (!(losesAnswer && socket === upstream)) client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (request: Buffer) => {
      if (losing.times > 0 && request.includes(`${losing.command}\0`)) {
        losing.times--;
        losesAnswer = true;
      }
      upstream.write(request);
    });
    upstream.on('data', async (answer) => {
      if (!losesAnswer) return void client.write(answer);
      lost++;
      await losing.meanwhile();
      client.destroy();
      if (!stopsAtNextLoss) return;
      server.close();
      destroyAll();
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
    stopAtNextLoss() {
      stopsAtNextLoss = true;
    },
    async close() {
      server.close();
      destroyAll();
    },
  };
}
