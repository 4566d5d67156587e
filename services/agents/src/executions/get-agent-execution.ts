import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { GetAgentExecutionRequest, GetAgentExecutionResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { summaryOf } from './message.ts';

/** Args, output and messages are gone after their own, shorter retention. */
export async function getAgentExecution(
  { executions }: Pick<Deps, 'executions'>,
  request: GetAgentExecutionRequest,
  context: CallContext,
): Promise<GetAgentExecutionResponse> {
  const organizationId = organizationOfCall(context);
  const execution = await executions.find(organizationId, request.id);
  if (!execution) throw new ServiceError('NOT_FOUND', 'Agent execution not found');
  const payload = await executions.findPayload(organizationId, execution._id);
  return {
    agentExecution: {
      ...summaryOf(execution),
      args: payload?.args,
      output: payload?.output ?? undefined,
      messages: JSON.parse(payload?.messages ?? '[]'),
    },
  };
}
