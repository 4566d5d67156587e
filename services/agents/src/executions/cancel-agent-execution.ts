import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { CancelAgentExecutionRequest, CancelAgentExecutionResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { cancellationEntry } from '../events.ts';
import { executionMessage } from './message.ts';
import { isActive } from './rules.ts';

/**
 * Asks for the end of an execution. Its owner stops it, at once in this process, within a second or two in another
 * one, and charges what it has used. Asking again changes nothing.
 * @throws ServiceError NOT_FOUND; CONFLICT when it has ended
 */
export async function cancelAgentExecution(
  { executions, heartbeats, clock }: Pick<Deps, 'executions' | 'heartbeats' | 'clock'>,
  { id }: CancelAgentExecutionRequest,
  context: CallContext,
): Promise<CancelAgentExecutionResponse> {
  const organizationId = organizationOfCall(context);
  const execution = await executions.byId(organizationId, id.toLowerCase());
  if (!execution) throw new ServiceError('NOT_FOUND', 'Agent execution not found');
  if (execution.cancelRequestedAt === undefined || !isActive(execution)) {
    const now = isoTime(clock.now());
    const requested = await retryOnConflict(
      context.signal,
      async () =>
        isActive(execution) && executions.requestCancel(execution, now, [cancellationEntry(context, execution, now)]),
    );
    if (!requested) throw new ServiceError('CONFLICT', 'The agent execution has ended');
  }
  heartbeats.cancel(organizationId, execution._id);
  return { agentExecution: executionMessage(execution), outcome: 'CANCEL_REQUESTED' };
}
