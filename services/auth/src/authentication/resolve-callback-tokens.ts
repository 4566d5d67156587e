import { CALLBACK_TOKEN, hashToken, isWellFormed } from 'platform/core/bearer-token.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import type { AgentsServiceService, CallbackTokenRun } from 'proto/agents/v1/agents.ts';
import { tierOf } from '../tiers.ts';
import type { KnownBearer, ResolveBearers } from './known-bearer.ts';

/** Whether another service must be asked about a bearer, for which no attempt with another bearer shall wait. */
export const isAskedAlone = (bearer: string): boolean => isWellFormed(CALLBACK_TOKEN, bearer);

/** Callback tokens of runs, which agents knows: one call for all attempts with one token. */
export const resolveCallbackTokens =
  ({ agents }: { agents: Pick<ServiceClient<typeof AgentsServiceService>, 'useCallbackToken'> }): ResolveBearers =>
  async (bearers, { attempts, deadline, signal }) => {
    const [bearer] = bearers.filter(isAskedAlone);
    if (bearer === undefined) return new Map();
    const { requestId } = attempts[0]!;
    const { run, admitted, maxCalls } = await agents.useCallbackToken(
      { hash: hashToken(bearer), calls: attempts.length },
      { principal: servicePrincipal('auth'), requestId, deadline, signal },
    );
    return new Map(run ? [[bearer, knownRun(run, { admitted, maxCalls })]] : []);
  };

function knownRun(
  { organizationId, agentExecutionId, agent, memoryTypes, mayWrite }: CallbackTokenRun,
  { admitted, maxCalls }: { admitted: number; maxCalls: number },
): KnownBearer {
  let calls = 0;
  return {
    organizationId,
    valid: true,
    principalIn: ({ tier }) => ({
      ...{ kind: 'AGENT_EXECUTION', organizationId, subject: agentExecutionId, name: agent, memoryTypes },
      ...{ tier, limits: { ...tierOf(tier).limits }, roles: [], groups: [], via: '', scopes: [] },
    }),
    restrictionOn(scope) {
      calls += 1;
      if (calls > admitted) return `The run may call its tools ${maxCalls} times`;
      return scope === 'memory:write' && !mayWrite ? 'The agent of this run may only read memory objects' : undefined;
    },
  };
}
