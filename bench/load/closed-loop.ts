import { openHttpConnection, type Address, type Answer } from './connection.ts';
import { KINDS, STATUS, type BenchRequest, type Kind } from './requests.ts';

/** Where requests go, and which. */
export interface Target {
  /** Connections take them in turn. */
  addresses: readonly Address[];
  next(): BenchRequest;
}

export interface LoadResult {
  /** Requests that were answered with success. */
  succeeded: Record<Kind, number>;
  /** Milliseconds from the start of each of them to the end of its answer. */
  latenciesMs: number[];
  /** What was wrong with the others. */
  failures: string[];
  /** From the first request to the last answer. */
  seconds: number;
}

export const noRequests = (): LoadResult['succeeded'] =>
  Object.fromEntries(KINDS.map((kind) => [kind, 0])) as LoadResult['succeeded'];

export const newResult = (): LoadResult => ({
  succeeded: noRequests(),
  latenciesMs: [],
  failures: [],
  seconds: 0,
});

export const countOf = ({ succeeded }: LoadResult): number =>
  Object.values(succeeded).reduce((sum, count) => sum + count, 0);

/**
 * Each connection sends its next request when it has the answer to the one before. All requests are answered at the
 * end: none is dropped.
 * @param isOver asked before each request
 * @param onAnswer called with each answer of success
 */
export async function runClosedLoop(
  { addresses, next }: Target,
  connections: number,
  isOver: () => boolean,
  onAnswer: (request: BenchRequest, answer: Answer) => void = () => undefined,
): Promise<LoadResult> {
  const result = newResult();
  const since = performance.now();
  async function loop(index: number): Promise<void> {
    const connection = openHttpConnection(addresses[index % addresses.length] as Address);
    while (!isOver()) {
      const request = next();
      const sentAt = performance.now();
      await connection.send(request.text).then(
        (answer) => record(result, request, sentAt, answer) && onAnswer(request, answer),
        (error: Error) => result.failures.push(`${request.kind}: ${error.message}`),
      );
    }
    connection.close();
  }
  await Promise.all(Array.from({ length: connections }, (_, index) => loop(index)));
  result.seconds = (performance.now() - since) / 1000;
  return result;
}

/** @returns whether the answer is one of success */
export function record(result: LoadResult, { kind }: BenchRequest, sinceMs: number, { status, body }: Answer): boolean {
  if (status !== STATUS[kind]) {
    result.failures.push(`${kind}: ${status} ${body.slice(0, 200)}`);
    return false;
  }
  result.succeeded[kind] += 1;
  result.latenciesMs.push(performance.now() - sinceMs);
  return true;
}

/** For `isOver`: so many seconds from now. */
export function after(seconds: number): () => boolean {
  const end = performance.now() + seconds * 1000;
  return () => performance.now() >= end;
}

/** For `isOver`: so many requests. */
export function afterRequests(count: number): () => boolean {
  let left = count;
  return () => left-- <= 0;
}
