import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { settledOp } from '../executions/store.ts';

type Needs = Pick<Deps, 'settledRuns' | 'platformStore'>;

/** A batch holds up all others of the store. */
const BATCH = 100;

/**
 * Marks the runs that this process has settled, of all organizations; resolves to their number. Those of a failed
 * batch stay unmarked: the reaper settles them again when their leases end, which changes nothing, and marks them.
 */
export async function markSettled({ settledRuns, platformStore }: Needs): Promise<number> {
  const runs = settledRuns.drain();
  for (let from = 0; from < runs.length; from += BATCH)
    await platformStore.apply(runs.slice(from, from + BATCH).map(settledOp));
  return runs.length;
}

export const settledJob = (deps: Needs & Pick<Deps, 'config'>): Job => ({
  name: 'settled',
  description: 'Marks the runs that are settled, so that the reaper leaves them alone.',
  intervalMs: deps.config.SETTLED_INTERVAL_MS,
  everyReplica: true,
  run: () => markSettled(deps),
});
