import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import type { Execution } from './store.ts';

/**
 * Takes back the record of a run that did not start.
 * @throws ServiceError OUTCOME_UNKNOWN when it may have stayed: then the reaper interrupts it, and it is seen among the executions
 */
export async function withdraw({ executions }: Pick<Deps, 'executions'>, execution: Execution): Promise<void> {
  const stays = (cause: unknown): never => {
    throw new ServiceError('OUTCOME_UNKNOWN', undefined, {
      facts: { success: false, sessionId: execution.sessionId, agentExecutionId: execution._id },
      cause,
    });
  };
  if (!(await executions.withdraw(execution).catch(stays)))
    stays(new Error(`the reaper took execution ${execution._id}`));
}
