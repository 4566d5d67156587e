import { once } from 'node:events';
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';

/** Below the ports of outgoing connections, so that a port that is kept for a restart stays free. */
const SERVERS = { first: 20_000, pairs: 6_000 };

const given = new Set<number>();

/**
 * A loopback port that is free, and so is the port above it. Returns no port twice, because an earlier caller may not
 * listen on its port yet.
 */
export async function freePort({ first, pairs } = SERVERS): Promise<number> {
  for (;;) {
    const port = first + 2 * randomInt(pairs);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

/** True if a server could listen on this port and on the one above it. */
export async function isFree(port: number): Promise<boolean> {
  return (await canListen(port)) && (await canListen(port + 1));
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
