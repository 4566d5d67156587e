import { ServiceError } from 'platform/core/errors.ts';
import type { RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { Execution, ExecutionPayload } from './store.ts';

/**
 * The answer that an ended execution gives, the first time and again.
 * @throws ServiceError when the run failed; both ids are among its facts
 */
export function answerOf(
  ended: Execution,
  payload: Pick<ExecutionPayload, 'output' | 'messages'>,
  { replayed = false } = {},
): RunAgentResponse {
  const { sessionId, _id: agentExecutionId, agent, error } = ended;
  if (error) {
    const headers: Record<string, string> = replayed ? { 'Idempotency-Replayed': 'true' } : {};
    throw new ServiceError(error.reason, error.message, {
      facts: { success: false, sessionId, agentExecutionId },
      headers,
    });
  }
  return {
    success: true,
    sessionId,
    agentExecutionId,
    agent,
    output: payload.output ?? 'null',
    messages: JSON.parse(payload.messages),
    idempotencyReplayed: replayed ? 'true' : undefined,
  };
}
