import { isoTime } from 'platform/core/clock.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { UseCallbackTokenRequest, UseCallbackTokenResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { isActive } from '../executions/rules.ts';
import type { CallbackTokenRecord } from './store.ts';

const UNKNOWN: UseCallbackTokenResponse = { run: undefined, admitted: 0, maxCalls: 0 };

/**
 * Whose run a callback token belongs to. Asked on every request that carries it, so that it dies with the run. Uses of
 * one token take turns: an endpoint may make many at once, of which all but one would conflict at every attempt.
 */
export async function useCallbackToken(
  { callbackTokens, executions, mutex, clock }: Pick<Deps, 'callbackTokens' | 'executions' | 'mutex' | 'clock'>,
  { hash, calls }: UseCallbackTokenRequest,
  { signal }: CallContext,
): Promise<UseCallbackTokenResponse> {
  const known = await callbackTokens.byHash(hash);
  if (!known) return UNKNOWN;
  const use = async (token: CallbackTokenRecord): Promise<UseCallbackTokenResponse> => {
    if (token.expiresAt <= isoTime(clock.now())) return UNKNOWN;
    const { organizationId, executionId: agentExecutionId, agent, memoryTypes, mayWrite, maxCalls } = token;
    const execution = await executions.byId(organizationId, agentExecutionId);
    if (!execution || !isActive(execution)) return UNKNOWN;
    const admitted = Math.min(calls, maxCalls - token.calls);
    if (admitted > 0) await callbackTokens.count(token, admitted);
    return { run: { organizationId, agentExecutionId, agent, memoryTypes, mayWrite }, admitted, maxCalls };
  };
  // what is used up counts nothing, so it waits for nobody
  if (known.calls >= known.maxCalls) return use(known);
  const { organizationId, _id } = known;
  return mutex(organizationId, _id, () =>
    retryOnConflict(signal, async () => {
      const token = await callbackTokens.byHash(hash);
      return token ? use(token) : UNKNOWN;
    }),
  );
}
