import { setTimeout as delay } from 'node:timers/promises';
import { countsAfter, isEmpty, type Backlog, type RecordCounts, type Records } from '../systems/records.ts';
import type { Kind } from '../load/requests.ts';

const POLL_MS = 100;
const GIVE_UP_MS = 120_000;

export interface Drained {
  /** What waited when the last request was answered. */
  backlog: Backlog;
  /** Milliseconds from then until nothing waited any more. */
  tookMs: number;
  /** Records that are too many or too few. */
  failures: string[];
}

/** Waits until nothing waits any more. @throws Error if that takes two minutes */
export async function untilDrained(records: Records): Promise<void> {
  for (const giveUpAt = Date.now() + GIVE_UP_MS; !isEmpty(await records.backlog()); await delay(POLL_MS))
    if (Date.now() > giveUpAt)
      throw new Error(`the backlog does not drain: ${JSON.stringify(await records.backlog())}`);
}

/**
 * Waits until events and audit trail have what the requests changed, and checks that they have just that.
 * @param before the counts before the requests
 */
export async function drain(
  records: Records,
  before: RecordCounts,
  succeeded: Readonly<Record<Kind, number>>,
  giveUpMs = GIVE_UP_MS,
): Promise<Drained> {
  const since = performance.now();
  const backlog = await records.backlog();
  const wanted = countsAfter(before, succeeded);
  let counts = before;
  const giveUpAt = Date.now() + giveUpMs;
  for (;;) {
    const isDrained = isEmpty(await records.backlog());
    if (isDrained) counts = await records.counts();
    const wrong = different(counts, wanted);
    // too few: an event may be written after the answer, and be in no outbox yet
    if (isDrained && (wrong.length === 0 || wrong.some((name) => counts[name] > wanted[name]))) break;
    if (Date.now() >= giveUpAt) break;
    await delay(POLL_MS);
  }
  return {
    backlog,
    tookMs: performance.now() - since,
    failures: different(counts, wanted).map((name) => `${name}: ${counts[name]} in place of ${wanted[name]}`),
  };
}

const different = (counts: RecordCounts, wanted: RecordCounts): (keyof RecordCounts)[] =>
  (Object.keys(wanted) as (keyof RecordCounts)[]).filter((name) => counts[name] !== wanted[name]);
