import type { Message, RunAgentResponse } from 'proto/agents/v1/agents.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Deps } from '../deps.ts';
import { isActive, type RunRequest } from './rules.ts';
import type { ExecutionPayloadRecord, ExecutionRecord, RunKeyRecord } from './store.ts';

/** A request whose idempotency key may have been claimed; `hash` is that of agent and args. */
type Repeatable = RunRequest & { hash: string | undefined };

/** The claim on the idempotency key of a request; undefined when there is no key, or the key is free. */
export const claimOf = async (
  { executions }: Pick<Deps, 'executions'>,
  organizationId: string,
  { key }: RunRequest,
): Promise<RunKeyRecord | undefined> =>
  key === undefined ? undefined : await executions.runKeyByKey(organizationId, key);

/**
 * The answer of the run that claimed the idempotency key; undefined when the key is free again.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED, RUN_IN_PROGRESS, or the failure of that run
 */
export async function replay(
  { executions }: Pick<Deps, 'executions'>,
  organizationId: string,
  run: Repeatable,
  claimed: RunKeyRecord,
): Promise<RunAgentResponse | undefined> {
  if (claimed.requestHash !== run.hash) throw new ServiceError('IDEMPOTENCY_KEY_REUSED');
  const execution = await executions.byId(organizationId, claimed.executionId);
  // Withdrawn or interrupted after the key was read: the key is free again.
  if (!execution || execution.status === 'interrupted') return undefined;
  if (isActive(execution))
    throw new ServiceError('RUN_IN_PROGRESS', undefined, {
      facts: { agentExecutionId: execution._id },
      headers: { 'Retry-After': '1' },
    });
  const payload = await executions.payloadById(organizationId, execution._id);
  if (!payload)
    throw new ServiceError('INTERNAL', undefined, {
      cause: new Error(`payload of execution ${execution._id} is missing`),
    });
  return answer(execution, payload, { replayed: true });
}

/**
 * The answer of the run that claimed the key first.
 * @throws ServiceError RUN_IN_PROGRESS also when that run has been withdrawn since: the client repeats either way
 */
export async function answerOfWinner(
  deps: Pick<Deps, 'executions'>,
  organizationId: string,
  run: Repeatable,
): Promise<RunAgentResponse> {
  const claimed = await claimOf(deps, organizationId, run);
  const replayed = claimed && (await replay(deps, organizationId, run, claimed));
  if (!replayed) throw new ServiceError('RUN_IN_PROGRESS', undefined, { headers: { 'Retry-After': '1' } });
  return replayed;
}

export async function answerOfInterrupted(
  { executions }: Pick<Deps, 'executions'>,
  { organizationId, _id }: ExecutionRecord,
): Promise<RunAgentResponse> {
  const interrupted = await executions.byId(organizationId, _id);
  if (!interrupted) throw new ServiceError('INTERNAL', undefined, { cause: new Error(`execution ${_id} is gone`) });
  return answer(interrupted, { output: null, messages: '[]' });
}

/** What the reply to a failed run says of it. */
export const failureFacts = ({ sessionId, _id }: ExecutionRecord) => ({
  success: false,
  sessionId,
  agentExecutionId: _id,
});

/**
 * The answer of an ended execution, the same for the first request and for repeats.
 * @throws ServiceError when the run failed, with both ids among its facts
 */
export function answer(
  ended: ExecutionRecord,
  payload: Pick<ExecutionPayloadRecord, 'output' | 'messages'>,
  { replayed = false } = {},
): RunAgentResponse {
  const { sessionId, _id: agentExecutionId, agent, error } = ended;
  const creditsCharged = String((ended.chargeMicros ?? 0) / 1e6);
  if (error) {
    const facts = failureFacts(ended);
    const headers = { 'Credits-Charged': creditsCharged, ...(replayed && { 'Idempotency-Replayed': 'true' }) };
    throw new ServiceError(error.reason, error.message, { facts, headers });
  }
  return {
    success: true,
    sessionId,
    agentExecutionId,
    agent,
    output: payload.output ?? 'null',
    messages: parseJson(payload.messages) as Message[],
    idempotencyReplayed: replayed ? 'true' : undefined,
    creditsCharged,
  };
}
