import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { newId } from 'platform/core/ids.ts';
import type { ApplyAgentRequest, ApplyAgentResponse } from 'proto/agents/v1/agents.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import type { Op } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { agentAuditEntry } from '../events.ts';
import { checkRuntime, parseDefinition } from './definition.ts';
import type { AgentRecord, AgentVersionRecord } from './store.ts';
import { agentMessage } from './message.ts';

/**
 * Creates an agent as a draft, or adds a version to it. A document equal to the newest version changes nothing, and
 * neither does a dry run.
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST, INVALID_SCHEMA, CONFLICT
 */
export async function applyAgent(
  deps: Pick<Deps, 'definitions' | 'runtimes' | 'schedule' | 'clock'>,
  request: ApplyAgentRequest,
  context: CallContext,
): Promise<ApplyAgentResponse> {
  const organizationId = organizationOfCall(context);
  const { definition, hash } = await deps.schedule(organizationId, () => parseDefinition(request.definition));
  await checkRuntime(organizationId, definition, deps.runtimes);
  const { name } = definition;
  const now = isoTime(deps.clock.now());
  const auditEntry = (before: number | null, after: number): Op =>
    agentAuditEntry(context, 'agent.apply', name, now, changesOf({ latestVersion: before }, { latestVersion: after }));
  const newVersion = (number: number): AgentVersionRecord => ({
    _id: newId(),
    organizationId,
    agent: name,
    version: number,
    hash,
    definition: request.definition,
    createdBy: context.principal.name,
    createdAt: now,
  });

  return retryOnConflict(context.signal, async () => {
    const agent = await deps.definitions.byName(organizationId, name);
    if (!agent && request.dryRun) return { agent: undefined, version: 1, changed: true };
    if (!agent) {
      const created: AgentRecord = {
        _id: newId(),
        organizationId,
        name,
        state: 'draft',
        latestVersion: 1,
        publishedVersion: null,
        publishedVersionId: null,
        runnable: false,
        revision: 1,
        createdAt: now,
        updatedAt: now,
      };
      await deps.definitions.create(created, newVersion(1), auditEntry(null, 1));
      return { agent: agentMessage(created), version: 1, changed: true };
    }

    const newest = await deps.definitions.versionByNumber(organizationId, name, agent.latestVersion);
    if (newest?.hash === hash) return { agent: agentMessage(agent), version: newest.version, changed: false };
    if (request.dryRun) return { agent: agentMessage(agent), version: agent.latestVersion + 1, changed: true };
    const next = newVersion(agent.latestVersion + 1);
    await deps.definitions.addVersion(agent, next, auditEntry(agent.latestVersion, next.version));
    return {
      agent: agentMessage({ ...agent, latestVersion: next.version, updatedAt: now }),
      version: next.version,
      changed: true,
    };
  });
}
