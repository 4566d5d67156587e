/** How long work may go on before the event loop sees to what came in meanwhile. */
const SLICE_MS = 5;

export type FairScheduler = <T>(organizationId: string, work: () => T) => Promise<T>;

/** Runs synchronous work that may be long: organizations in turn, and never two long pieces without a turn of the event loop between them. */
export function fairScheduler(nowMs: () => number = () => performance.now()): FairScheduler {
  const waiting = new Map<string, (() => void)[]>();

  function drain(): void {
    const until = nowMs() + SLICE_MS;
    // An organization that has more goes to the end, where this loop meets it again.
    for (const [organizationId, pieces] of waiting) {
      waiting.delete(organizationId);
      pieces.shift()!();
      if (pieces.length > 0) waiting.set(organizationId, pieces);
      if (nowMs() >= until) break;
    }
    if (waiting.size > 0) setImmediate(drain);
  }

  return (organizationId, work) =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) setImmediate(drain);
      const piece = () => void Promise.try(work).then(resolve, reject);
      const before = waiting.get(organizationId);
      if (before) before.push(piece);
      else waiting.set(organizationId, [piece]);
    });
}
