import { randomInt } from 'node:crypto';
import { canListen } from '../../dev-servers/src/ports.ts';
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

/**
 * Below the ports of outgoing connections and of the engines, and a range for each of Jest's workers: otherwise a port
 * could be taken before the process listens on it, or while it is restarted.
 */
const RANGE_PORTS = 1_000;
const FIRST_PORT = 10_000 + RANGE_PORTS * (Number(process.env.JEST_WORKER_ID ?? 0) % 10);
let next = randomInt(RANGE_PORTS);

/** Loopback ports that are free. None is returned twice, because an earlier caller may not listen on its port yet. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST_PORT + (next++ % RANGE_PORTS);
    if (await canListen(port)) ports.push(port);
  }
  return ports;
}
