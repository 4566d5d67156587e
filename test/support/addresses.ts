import { once } from 'node:events';
import { createServer } from 'node:net';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';

const NAMES = Object.keys(PROCESSES) as ProcessName[];

/** Settings `<NAME>_LISTEN` and `<NAME>_ADDRESS` of every process, on free ports. */
export async function freeAddresses(): Promise<Record<string, string>> {
  const ports = await freePorts(NAMES.length);
  return Object.fromEntries(
    NAMES.flatMap((name, i) =>
      (['LISTEN', 'ADDRESS'] as const).map((setting) => [settingOf(name, setting), `127.0.0.1:${ports[i]}`]),
    ),
  );
}

/** The same for two replicas: each listens on its own ports and calls the processes of both. */
export async function replicaAddresses(): Promise<[Record<string, string>, Record<string, string>]> {
  const ports = await freePorts(2 * NAMES.length);
  const place = (replica: number, i: number): string => `127.0.0.1:${ports[replica * NAMES.length + i]}`;
  const of = (replica: number) =>
    Object.fromEntries(
      NAMES.flatMap((name, i) => [
        [settingOf(name, 'LISTEN'), place(replica, i)],
        [settingOf(name, 'ADDRESS'), `${place(0, i)},${place(1, i)}`],
      ]),
    );
  return [of(0), of(1)];
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
