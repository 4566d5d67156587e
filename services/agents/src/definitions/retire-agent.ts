import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { RetireAgentRequest, RetireAgentResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { agentAudit } from './audit.ts';
import type { Agent } from './store.ts';
import { agentMessage } from './message.ts';

export async function retireAgent(
  deps: Pick<Deps, 'definitions' | 'clock'>,
  request: RetireAgentRequest,
  context: CallContext,
): Promise<RetireAgentResponse> {
  return retryOnConflict(context.signal, async () => {
    const agent = await deps.definitions.find(organizationOfCall(context), request.name);
    if (!agent) throw new ServiceError('NOT_FOUND', 'Agent not found');
    if (agent.state === 'retired') return { agent: agentMessage(agent) };

    const now = isoTime(deps.clock.now());
    const changes: Partial<Agent> = {
      state: 'retired',
      publishedVersion: null,
      publishedVersionId: null,
      runnable: false,
      updatedAt: now,
    };
    await deps.definitions.change(agent, changes, agentAudit(context, 'agent.retire', agent.name, now));
    return { agent: agentMessage({ ...agent, ...changes }) };
  });
}
