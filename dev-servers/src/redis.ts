import { once } from 'node:events';
import { createConnection } from 'node:net';
import type { ServerSpec } from './server-spec.ts';

const PROBE_TIMEOUT_MS = 2_000;

export const redis: ServerSpec = {
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
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('no answer')));
    try {
      socket.write('PING\r\n');
      const [reply] = (await once(socket, 'data')) as [Buffer];
      // a server that requires a password has also loaded its data
      return /^(\+PONG|-NOAUTH)/.test(reply.toString());
    } finally {
      socket.destroy();
    }
  },
};
