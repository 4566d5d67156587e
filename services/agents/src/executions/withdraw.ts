import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import { executionEvents } from '../events.ts';
import { failureFacts } from './answer.ts';
import { cancelledRun } from './evaluate.ts';
import type { ExecutionRecord } from './store.ts';

/**
 * Removes the record of a run that did not start; its idempotency key is free again.
 * @throws ServiceError RUN_CANCELLED when somebody was told that the run ends as cancelled, so it does, for nothing;
 * OUTCOME_UNKNOWN when the record may remain: the reaper then interrupts the run, and the client finds it among the
 * executions
 */
export async function withdraw(
  { executions, settledRuns, clock }: Pick<Deps, 'executions' | 'settledRuns' | 'clock'>,
  execution: ExecutionRecord,
): Promise<void> {
  const facts = failureFacts(execution);
  const failed = (cause: unknown): never => {
    throw new ServiceError('OUTCOME_UNKNOWN', undefined, { facts, cause });
  };
  if (await executions.withdraw(execution).catch(failed)) return;
  const finishedAt = isoTime(clock.now());
  const { end, ...result } = cancelledRun({});
  const ended: ExecutionRecord = { ...execution, ...end, chargeMicros: 0, finishedAt };
  if (!(await executions.finish(ended, result, executionEvents(ended, finishedAt)).catch(failed)))
    failed(new Error(`the reaper took over execution ${execution._id}`));
  settledRuns.note(ended);
  throw new ServiceError('RUN_CANCELLED', undefined, { facts });
}
