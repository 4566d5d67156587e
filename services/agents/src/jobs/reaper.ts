import { isoTime } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import type { Deps } from '../deps.ts';
import { executionEvents } from '../events.ts';
import { isPermanent } from '../executions/releases.ts';
import { settleOrRelease } from '../executions/reservation.ts';
import { INTERRUPTED, isActive } from '../executions/rules.ts';
import { EXECUTIONS, type ExecutionRecord } from '../executions/store.ts';
import { markSettled } from './settled.ts';

type Needs = Pick<
  Deps,
  'platformStore' | 'executions' | 'credits' | 'settledRuns' | 'countedRuns' | 'clock' | 'config' | 'log'
>;

const BATCH = 100;

/**
 * Completes runs after a crash: interrupts those whose lease has expired, free of charge, and settles those that ended
 * and were not settled. Each attempt renews the lease first, so an execution that cannot be completed now is tried
 * again when that lease expires, and does not block the others meanwhile.
 */
export const reaperJob = (deps: Needs): Job => ({
  name: 'reaper',
  description: 'Interrupts runs whose process died, and settles ended runs whose credits are still reserved.',
  intervalMs: deps.config.REAPER_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    while (!signal.aborted) {
      const overdue = await deps.platformStore.find(
        EXECUTIONS,
        { leaseUntil: { lt: await deps.platformStore.now() } },
        { sort: [['leaseUntil', 'asc']], limit: BATCH },
      );
      for (const execution of overdue) if (!signal.aborted && (await complete(deps, execution))) count += 1;
      await markSettled(deps);
      if (overdue.length < BATCH) break;
    }
    return count;
  },
});

/** True when this call completed the execution: it is ended, and settled or beyond settlement. */
async function complete(deps: Needs, execution: ExecutionRecord): Promise<boolean> {
  const ended = isActive(execution)
    ? await interrupt(deps, execution)
    : (await deps.executions.leaseSettlement(execution)) && execution;
  if (!ended) return false;
  try {
    await settleOrRelease(deps, ended, {
      principal: servicePrincipal('agents', ended.organizationId),
      requestId: newId(),
    });
    return true;
  } catch (error) {
    const { _id: agentExecutionId, organizationId, chargeMicros } = ended;
    if (isPermanent(error)) {
      deps.log.error(
        { error, agentExecutionId, organizationId, chargeMicros },
        'a run will never be settled: credits does not know its reservation',
      );
      deps.settledRuns.note(ended);
      return true;
    }
    deps.log.warn({ error, agentExecutionId }, 'a run is not settled yet; the reaper will try again');
    return false;
  }
}

async function interrupt(
  { executions, countedRuns, clock }: Pick<Needs, 'executions' | 'countedRuns' | 'clock'>,
  abandoned: ExecutionRecord,
): Promise<ExecutionRecord | false> {
  const finishedAt = isoTime(clock.now());
  const ended: ExecutionRecord = { ...abandoned, ...INTERRUPTED, chargeMicros: 0, finishedAt };
  if (!(await executions.takeOver(abandoned, ended, executionEvents(ended, finishedAt)))) return false;
  countedRuns.interrupted();
  return ended;
}
