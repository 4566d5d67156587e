import { isoTime } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import type { Deps } from '../deps.ts';
import { endEvents } from '../executions/events.ts';
import { INTERRUPTED, isActive } from '../executions/rules.ts';
import { isFinal, settle } from '../executions/settle.ts';
import { executions as collection, type Execution } from '../executions/store.ts';

type ReaperDeps = Pick<Deps, 'platformStore' | 'executions' | 'credits' | 'clock' | 'config' | 'log'>;

const BATCH = 100;

/**
 * Finishes what a crash left: runs whose lease ended are interrupted and cost nothing, ended runs that were not settled are.
 * One that cannot be finished now is leased meanwhile, so it neither blocks the others nor is forgotten.
 */
export const reaper = (deps: ReaperDeps): Job => ({
  name: 'reaper',
  description: 'Interrupts runs that lost their process, and settles ended runs whose credits are still set aside.',
  intervalMs: deps.config.REAPER_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    while (!signal.aborted) {
      const overdue = await deps.platformStore.find(
        collection,
        { leaseUntil: { lt: await deps.platformStore.now() } },
        { sort: [['leaseUntil', 'asc']], limit: BATCH },
      );
      for (const execution of overdue) if (!signal.aborted && (await reap(deps, execution))) count += 1;
      if (overdue.length < BATCH) break;
    }
    return count;
  },
});

/** True when nothing is left to do for this execution, by our hand. */
async function reap(deps: ReaperDeps, execution: Execution): Promise<boolean> {
  const ended = isActive(execution)
    ? await interrupt(deps, execution)
    : (await deps.executions.takeSettlement(execution)) && execution;
  if (!ended) return false;
  try {
    await settle(deps, ended, { principal: servicePrincipal('agents', ended.organizationId), requestId: newId() });
    return true;
  } catch (error) {
    if (isFinal(error)) {
      deps.log.error(
        { error, agentExecutionId: ended._id, organizationId: ended.organizationId, chargeMicros: ended.chargeMicros },
        'never settled: credits does not know its reservation any more',
      );
      await deps.executions.settled(ended);
      return true;
    }
    deps.log.warn({ error, agentExecutionId: ended._id }, 'not settled yet; trying again later');
    return false;
  }
}

async function interrupt(
  { executions, clock }: Pick<ReaperDeps, 'executions' | 'clock'>,
  abandoned: Execution,
): Promise<Execution | false> {
  const finishedAt = isoTime(clock.now());
  const ended: Execution = { ...abandoned, ...INTERRUPTED, chargeMicros: 0, finishedAt };
  return (await executions.takeOver(abandoned, ended, endEvents(ended, finishedAt))) && ended;
}
