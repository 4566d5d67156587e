import { auditOp, outboxOp } from 'platform/events/outbox.ts';
import { codeOf } from 'platform/core/errors.ts';
import type { Op } from 'platform/store/store.ts';
import type { Execution } from './store.ts';

/** What the world hears of a run, written in the batch that ends it: started, finished, and an audit entry. */
export function endEvents(ended: Execution, time: string): Op[] {
  const {
    _id,
    organizationId,
    sessionId,
    agent,
    agentVersion,
    status,
    error,
    actor,
    chargeMicros,
    startedAt,
    requestId,
  } = ended;
  const facts = { id: _id, sessionId, agent, version: agentVersion, actor, requestId };
  const event = {
    topic: 'agent.execution.v1',
    source: '/agents',
    organizationId,
    subject: `executions/${_id}`,
  } as const;
  const started =
    startedAt === null
      ? []
      : [
          outboxOp({
            ...event,
            type: 'agent.execution.started.v1',
            sequence: 1,
            time: startedAt,
            data: { ...facts, status: 'running', charge: null },
          }),
        ];
  return [
    ...started,
    outboxOp({
      ...event,
      type: 'agent.execution.finished.v1',
      sequence: 2,
      time,
      data: { ...facts, status, charge: (chargeMicros ?? 0) / 1e6 },
    }),
    auditOp({
      source: '/agents',
      organizationId,
      action: 'agent.run',
      outcome: error ? 'failure' : 'success',
      actor,
      target: { type: 'agent_execution', id: _id },
      ...(error && { code: codeOf(error.reason) }),
      requestId,
      time,
    }),
  ];
}
