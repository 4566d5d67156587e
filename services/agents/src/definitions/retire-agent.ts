import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import type { RetireAgentRequest, RetireAgentResponse } from 'proto/agents/v1/agents.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import type { Deps } from '../deps.ts';
import { agentAuditEntry, publicationOf } from '../events.ts';
import type { AgentRecord } from './store.ts';
import { agentMessage } from './message.ts';

/**
 * Removes an agent from the API; idempotent. Its versions and executions stay.
 * @throws ServiceError NOT_FOUND, CONFLICT
 */
export async function retireAgent(
  deps: Pick<Deps, 'definitions' | 'clock'>,
  request: RetireAgentRequest,
  context: CallContext,
): Promise<RetireAgentResponse> {
  const name = requireText('name', request.name);
  return retryOnConflict(context.signal, async () => {
    const agent = await deps.definitions.byName(organizationOfCall(context), name);
    if (!agent) throw new ServiceError('NOT_FOUND', 'Agent not found');
    if (agent.state === 'retired') return { agent: agentMessage(agent) };

    const now = isoTime(deps.clock.now());
    const changes: Partial<AgentRecord> = {
      state: 'retired',
      publishedVersion: null,
      publishedVersionId: null,
      retiredVersion: agent.publishedVersion,
      runnable: false,
      updatedAt: now,
    };
    const changed = changesOf(publicationOf(agent), publicationOf({ ...agent, ...changes }));
    await deps.definitions.change(agent, changes, agentAuditEntry(context, 'agent.retire', agent.name, now, changed));
    return { agent: agentMessage({ ...agent, ...changes }) };
  });
}
