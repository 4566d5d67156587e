import { openHttpConnection, type Address, type HttpConnection } from './connection.ts';
import { newResult, record, type LoadResult, type Target } from './closed-loop.ts';

/** Beyond, requests wait for a free connection, and that time is theirs. */
const MAX_CONNECTIONS = 512;
const TICK_MS = 1;

/**
 * Starts requests at a fixed rate, however long the answers take. The latency of a request counts from the time at
 * which it was due, so that a stall also shows in the requests that it delayed (no coordinated omission).
 */
export async function runFixedRate(target: Target, requestsPerSecond: number, seconds: number): Promise<LoadResult> {
  const { addresses, next } = target;
  const result = newResult();
  const idle: HttpConnection[] = [];
  const all: HttpConnection[] = [];
  const due: number[] = [];
  const amount = Math.round(requestsPerSecond * seconds);
  const since = performance.now();
  let scheduled = 0;
  let answered = 0;
  const done = Promise.withResolvers<void>();

  function freeConnection(): HttpConnection | undefined {
    // the one that has been idle for longest: so all addresses have their share
    const free = idle.shift();
    if (free || all.length >= MAX_CONNECTIONS) return free;
    const opened = openHttpConnection(addresses[all.length % addresses.length] as Address);
    all.push(opened);
    return opened;
  }

  function send(): void {
    for (let connection; due.length > 0 && (connection = freeConnection());) {
      const dueAt = due.shift() as number;
      const [used, request] = [connection, next()];
      void used
        .send(request.text)
        .then(
          (answer) => record(result, request, dueAt, answer),
          (error: Error) => result.failures.push(`${request.kind}: ${error.message}`),
        )
        .then(() => {
          idle.push(used);
          answered += 1;
          if (answered === amount) done.resolve();
          else send();
        });
    }
  }

  const timer = setInterval(() => {
    const now = performance.now();
    while (scheduled < amount && since + (scheduled * 1000) / requestsPerSecond <= now)
      due.push(since + (scheduled++ * 1000) / requestsPerSecond);
    if (scheduled === amount) clearInterval(timer);
    send();
  }, TICK_MS);
  if (amount > 0) await done.promise;
  clearInterval(timer);
  for (const connection of all) connection.close();
  result.seconds = (performance.now() - since) / 1000;
  return result;
}
