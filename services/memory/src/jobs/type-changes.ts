import type { Job } from 'platform/jobs/jobs.ts';
import { ExpectationFailedError } from 'platform/store/store.ts';
import { carryOut } from '../changes/carry-out.ts';
import { progressOp, TYPE_CHANGES, withProgress, type TypeChangeRecord } from '../changes/store.ts';
import type { Deps } from '../deps.ts';

const INTERVAL_MS = 5_000;
/** That one replica goes on with at once. */
const BATCH = 4;

type Needs = Parameters<typeof carryOut>[0] & Pick<Deps, 'instanceId' | 'platformStore'>;

/** Goes on with changes and deletions of memory types whose process has died or stopped. */
export const typeChangesJob = (deps: Needs): Job => ({
  name: 'type-changes',
  description: 'Goes on with changes and deletions of memory types whose process died.',
  intervalMs: INTERVAL_MS,
  async run(signal) {
    const { platformStore, storeNow } = deps;
    let count = 0;
    while (!signal.aborted) {
      const orphans = await platformStore.find(
        TYPE_CHANGES,
        { state: 'running', leaseUntil: { lt: await storeNow() } },
        { sort: [['leaseUntil', 'asc']], limit: BATCH },
      );
      await Promise.all(orphans.map((orphan) => goOn(deps, orphan, signal)));
      count += orphans.length;
      if (orphans.length < BATCH) break;
    }
    return count;
  },
});

async function goOn(deps: Needs, orphan: TypeChangeRecord, signal: AbortSignal): Promise<void> {
  const { changes, storeNow, config, instanceId } = deps;
  const claim = { owner: instanceId, leaseUntil: (await storeNow()) + config.LEASE_MS };
  try {
    await changes.apply(orphan.organizationId, [progressOp(orphan, claim)]);
  } catch (error) {
    if (error instanceof ExpectationFailedError) return;
    throw error;
  }
  await carryOut(deps, withProgress(orphan, claim), signal).catch((error: unknown) =>
    deps.log.error({ typeId: orphan._id, error }, 'could not go on with a change of a memory type'),
  );
}
