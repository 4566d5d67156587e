import { once } from 'node:events';
import { createConnection } from 'node:net';
import type { Recipe } from './server-spec.ts';

const ASK_TIMEOUT_MS = 2_000;

export const redis: Recipe = {
  key: 'redis',
  name: 'Redis',
  setting: 'REDIS_URL',
  url: (port) => `redis://127.0.0.1:${port}`,
  prepare: async () => undefined,
  command: ({ data, port }) => [
    'redis-server',
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    data,
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
    '--maxmemory-policy',
    'noeviction',
    '--save',
    '',
    '--daemonize',
    'no',
    '--set-proc-title',
    'no',
  ],
  async answers(port) {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.setTimeout(ASK_TIMEOUT_MS, () => socket.destroy(new Error('no answer')));
    try {
      socket.write('PING\r\n');
      const [reply] = (await once(socket, 'data')) as [Buffer];
      // one that asks for a password has read its data, too
      return /^(\+PONG|-NOAUTH)/.test(reply.toString());
    } finally {
      socket.destroy();
    }
  },
};
