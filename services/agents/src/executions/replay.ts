import { createHash } from 'node:crypto';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { RunAgentResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { answerOf } from './answer.ts';
import { isActive, type RunRequest } from './rules.ts';

/** Requests with this hash are the same request. */
export const requestHashOf = ({ agentName, args }: RunRequest): string =>
  createHash('sha256').update(canonicalJson({ agentName, args })).digest('hex');

/**
 * The answer of the run that holds this idempotency key; undefined: the key is free.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED, RUN_IN_PROGRESS, or the failure of that run
 */
export async function replay(
  { executions }: Pick<Deps, 'executions'>,
  organizationId: string,
  key: string,
  request: RunRequest,
): Promise<RunAgentResponse | undefined> {
  const claim = await executions.findRunKey(organizationId, key);
  if (!claim) return undefined;
  if (claim.requestHash !== requestHashOf(request)) throw new ServiceError('IDEMPOTENCY_KEY_REUSED');
  const execution = await executions.find(organizationId, claim.executionId);
  // Withdrawn or interrupted since the claim was read.
  if (!execution || execution.status === 'interrupted') return undefined;
  if (isActive(execution))
    throw new ServiceError('RUN_IN_PROGRESS', undefined, {
      facts: { agentExecutionId: execution._id },
      headers: { 'Retry-After': '1' },
    });
  const payload = await executions.findPayload(organizationId, execution._id);
  if (!payload)
    throw new ServiceError('INTERNAL', undefined, {
      cause: new Error(`payload of execution ${execution._id} is missing`),
    });
  return answerOf(execution, payload, { replayed: true });
}
