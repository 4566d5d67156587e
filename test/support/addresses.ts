import { freePort } from '../../dev-servers/src/ports.ts';
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
 * Below the ports of the engines, and a range for each worker of each lane of Jest: otherwise two could choose the same
 * port before a process listens on it. From 10,100, because fetch refuses port 10,080.
 */
const { JEST_WORKER_ID = '0', TEST_LANE = '0' } = process.env;
const RANGE = { first: 10_100 + 1_000 * (Number(JEST_WORKER_ID) % 9) + 500 * Number(TEST_LANE), pairs: 250 };

/** Loopback ports that are free. None is returned twice. */
export const freePorts = (count: number): Promise<number[]> =>
  Array.fromAsync({ length: count }, () => freePort(RANGE));
