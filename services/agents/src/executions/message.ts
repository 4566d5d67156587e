import { codeOf } from 'platform/core/errors.ts';
import type { AgentExecutionSummary } from 'proto/agents/v1/agents.ts';
import { usageOf, type ExecutionRecord } from './store.ts';

/** An execution without args, output and messages; its charge in credits. */
export function executionMessage(execution: ExecutionRecord): AgentExecutionSummary {
  const {
    _id: id,
    sessionId,
    agent,
    agentVersion,
    status,
    error,
    actor,
    chargeMicros,
    createdAt,
    startedAt,
    finishedAt,
  } = execution;
  const usage = usageOf(execution) ?? undefined;
  return {
    id,
    sessionId,
    agent,
    agentVersion,
    status,
    error: error ? JSON.stringify({ code: codeOf(error.reason), message: error.message }) : undefined,
    actor: { kind: actor.kind, id: actor.id, name: actor.name },
    charge: chargeMicros === null ? undefined : chargeMicros / 1e6,
    usage: usage && JSON.stringify(usage),
    createdAt,
    startedAt: startedAt ?? undefined,
    finishedAt: finishedAt ?? undefined,
  };
}
