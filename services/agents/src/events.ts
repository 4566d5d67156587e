import { codeOf } from 'platform/core/errors.ts';
import { actorOf } from 'platform/core/principal.ts';
import { changesOf, type AuditChanges } from 'platform/events/audit-changes.ts';
import { auditEntryOp, eventOp, type NewAuditEntry } from 'platform/events/outbox.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Op } from 'platform/store/store.ts';
import type { AgentRecord } from './definitions/store.ts';
import type { ExecutionRecord } from './executions/store.ts';

const SOURCE = '/agents';

/** The audit entry of a request that has changed something, for the batch of the change. `time` is ISO-8601 UTC. */
const changeEntry = (
  context: CallContext,
  { action, target, time, changes }: Pick<NewAuditEntry, 'action' | 'target' | 'time' | 'changes'>,
): Op =>
  auditEntryOp({
    source: SOURCE,
    organizationId: organizationOfCall(context),
    action,
    outcome: 'success',
    actor: actorOf(context.principal),
    target,
    changes,
    requestId: context.requestId,
    time,
  });

export const agentAuditEntry = (
  context: CallContext,
  action: 'agent.apply' | 'agent.publish' | 'agent.retire',
  name: string,
  time: string,
  changes: AuditChanges,
): Op => changeEntry(context, { action, target: { type: 'agent', id: name }, time, changes });

export const secretAuditEntry = (
  context: CallContext,
  action: 'secret.set' | 'secret.delete',
  name: string,
  time: string,
): Op => changeEntry(context, { action, target: { type: 'secret', id: name }, time });

/** Of a request to end a run. */
export const cancellationEntry = (context: CallContext, { _id, agent }: ExecutionRecord, time: string): Op =>
  changeEntry(context, {
    action: 'agent.cancel_run',
    target: { type: 'agent_execution', id: _id },
    time,
    changes: changesOf({}, { agent }),
  });

/** What a publication and a retirement change of an agent. */
export const publicationOf = ({ state, publishedVersion }: Pick<AgentRecord, 'state' | 'publishedVersion'>) => ({
  state,
  publishedVersion,
});

/**
 * The events and the audit entry of a run, for the batch that ends it. A run that never began to evaluate has no
 * started event. `charge` is in credits.
 * @param time when the run ended, ISO-8601 UTC
 */
export function executionEvents(ended: ExecutionRecord, time: string): Op[] {
  const { _id, organizationId, sessionId, agent, agentVersion, status, error, actor, requestId } = ended;
  const charge = (ended.chargeMicros ?? 0) / 1e6;
  const common = { id: _id, sessionId, agent, version: agentVersion, actor, requestId };
  const envelope = {
    topic: 'agent.execution.v1',
    source: SOURCE,
    organizationId,
    subject: `executions/${_id}`,
  } as const;
  const events: Op[] = [];
  if (ended.startedAt !== null)
    events.push(
      eventOp({
        ...envelope,
        type: 'agent.execution.started.v1',
        sequence: 1,
        time: ended.startedAt,
        data: { ...common, status: 'running', charge: null },
      }),
    );
  events.push(
    eventOp({
      ...envelope,
      type: 'agent.execution.finished.v1',
      sequence: 2,
      time,
      data: { ...common, status, charge },
    }),
    auditEntryOp({
      source: SOURCE,
      organizationId,
      action: 'agent.run',
      outcome: error ? 'failure' : 'success',
      actor,
      target: { type: 'agent_execution', id: _id },
      changes: changesOf({}, { agent, version: agentVersion, charge }),
      ...(error && { code: codeOf(error.reason) }),
      requestId,
      time,
    }),
  );
  return events;
}
