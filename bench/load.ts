import autocannon from 'autocannon';
import { randomUUID } from 'node:crypto';
import { cpuOf } from './processes.ts';

export interface Target {
  name: string;
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  /** Makes the body of one request from a unique string. */
  body?(unique: string): object;
  pids: Readonly<Record<string, number>>;
}
export interface Measured {
  name: string;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  failed: number;
  /** CPU microseconds per request of each process. */
  cpu: Record<string, number>;
}

/** Runs one round of load and measures throughput, latency and the CPU time of the processes. */
export async function measure(target: Target, connections: number, durationS: number): Promise<Measured> {
  const before = Object.entries(target.pids).map(([name, pid]) => [name, cpuOf(pid)] as const);
  const { body } = target;
  const result = await autocannon({
    url: target.url,
    method: target.method,
    headers: target.headers,
    connections,
    duration: durationS,
    ...(body
      ? {
          requests: [{ setupRequest: (request: object) => ({ ...request, body: JSON.stringify(body(randomUUID())) }) }],
        }
      : {}),
  });
  const requests = result.requests.total;
  return {
    name: target.name,
    requestsPerSecond: Math.round(result.requests.average),
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failed: result.non2xx + result.errors,
    cpu: Object.fromEntries(
      before.map(([name, micros]) => [name, Math.round((cpuOf(target.pids[name] as number) - micros) / requests)]),
    ),
  };
}
