/** Work runs without a pause for at most this long, plus the length of the last piece. */
const SLICE_MS = 5;

export type FairScheduler = <T>(organizationId: string, work: () => T) => Promise<T>;

/**
 * Runs synchronous work that may take long, such as compiling a schema. Organizations are served round-robin, and after
 * every slice of 5 ms the event loop handles what arrived meanwhile.
 */
export function fairScheduler(nowMs: () => number = () => performance.now()): FairScheduler {
  // A Map keeps the order of insertion: the first organization is served next and then inserted again at the end.
  const waiting = new Map<string, (() => void)[]>();

  function next(): (() => void) | undefined {
    for (const [organizationId, pieces] of waiting) {
      waiting.delete(organizationId);
      const piece = pieces.shift();
      if (pieces.length > 0) waiting.set(organizationId, pieces);
      return piece;
    }
    return undefined;
  }

  function runSlice(): void {
    const until = nowMs() + SLICE_MS;
    for (let piece; nowMs() < until && (piece = next());) piece();
    if (waiting.size > 0) setImmediate(runSlice);
  }

  return (organizationId, work) =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) setImmediate(runSlice);
      const piece = () => void Promise.try(work).then(resolve, reject);
      const pieces = waiting.get(organizationId);
      if (pieces) pieces.push(piece);
      else waiting.set(organizationId, [piece]);
    });
}
