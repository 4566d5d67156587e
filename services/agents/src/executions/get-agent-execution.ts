import { parseJson } from 'platform/core/parse-json.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { GetAgentExecutionRequest, GetAgentExecutionResponse, Message } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { executionMessage } from './message.ts';

/**
 * One execution. Args, output and messages are absent after their own, shorter retention.
 * @throws ServiceError NOT_FOUND
 */
export async function getAgentExecution(
  { executions }: Pick<Deps, 'executions'>,
  request: GetAgentExecutionRequest,
  context: CallContext,
): Promise<GetAgentExecutionResponse> {
  const organizationId = organizationOfCall(context);
  const execution = await executions.byId(organizationId, request.id.toLowerCase());
  if (!execution) throw new ServiceError('NOT_FOUND', 'Agent execution not found');
  const payload = await executions.payloadById(organizationId, execution._id, {
    maxBytes: context.maxReplyBytes,
  });
  return {
    agentExecution: {
      ...executionMessage(execution),
      args: payload?.args,
      output: payload?.output ?? undefined,
      messages: parseJson(payload?.messages ?? '[]') as Message[],
      requestId: execution.requestId,
      traceId: execution.traceId,
    },
  };
}
