import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { requireText, ServiceError } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { PublishAgentRequest, PublishAgentResponse } from 'proto/agents/v1/agents.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import type { Deps } from '../deps.ts';
import { agentAuditEntry, publicationOf } from '../events.ts';
import { isRunnable, type Definition } from './rules.ts';
import type { AgentRecord } from './store.ts';
import { agentMessage } from './message.ts';

/**
 * Publishes a version, by default the newest, or of a retired agent the one that was published; idempotent. An older
 * version than the published one is a roll-back.
 * @throws ServiceError NOT_FOUND, CONFLICT
 */
export async function publishAgent(
  deps: Pick<Deps, 'definitions' | 'schedule' | 'clock'>,
  request: PublishAgentRequest,
  context: CallContext,
): Promise<PublishAgentResponse> {
  const name = requireText('name', request.name);
  const organizationId = organizationOfCall(context);
  return retryOnConflict(context.signal, async () => {
    const agent = await deps.definitions.byName(organizationId, name);
    if (!agent) throw new ServiceError('NOT_FOUND', 'Agent not found');
    const version = await deps.definitions.versionByNumber(
      organizationId,
      agent.name,
      request.version ?? agent.retiredVersion ?? agent.latestVersion,
    );
    if (!version) throw new ServiceError('NOT_FOUND', 'Agent version not found');
    if (agent.state === 'published' && agent.publishedVersion === version.version)
      return { agent: agentMessage(agent) };

    const { definition } = version;
    const runnable = await deps.schedule(organizationId, () => isRunnable(parseJson(definition) as Definition));
    const now = isoTime(deps.clock.now());
    const changes: Partial<AgentRecord> = {
      state: 'published',
      publishedVersion: version.version,
      publishedVersionId: version._id,
      retiredVersion: null,
      runnable,
      updatedAt: now,
    };
    const changed = changesOf(publicationOf(agent), publicationOf({ ...agent, ...changes }));
    await deps.definitions.change(agent, changes, agentAuditEntry(context, 'agent.publish', agent.name, now, changed));
    return { agent: agentMessage({ ...agent, ...changes }) };
  });
}
