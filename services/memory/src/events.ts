import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { auditOp, outboxOp } from 'platform/events/outbox.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Op } from 'platform/store/store.ts';

export const SOURCE = '/memory';

export interface Change {
  noun: 'type' | 'object';
  verb: 'create' | 'update' | 'delete';
  id: string;
  /** Rises by one with every change of the same type or object; a deletion has one, too. */
  revision: number;
  /** ISO-8601 UTC. */
  time: string;
  /** What names it besides its id; never content. */
  names: Record<string, string | number>;
}

/** The change event and the audit entry of one change, for the batch of the change itself. */
export function changeOps(context: CallContext, { noun, verb, id, revision, time, names }: Change): Op[] {
  const organizationId = organizationOfCall(context);
  const actor = actorOf(context.principal);
  return [
    outboxOp({
      topic: 'memory.change.v1',
      source: SOURCE,
      type: `memory.${noun}.${verb}d.v1`,
      organizationId,
      subject: `${noun}s/${id}`,
      sequence: revision,
      time,
      data: { id, ...names, revision, actor, requestId: context.requestId },
    }),
    auditOp({
      source: SOURCE,
      organizationId,
      action: `memory_${noun}.${verb}`,
      outcome: 'success',
      actor,
      target: { type: `memory_${noun}`, id },
      requestId: context.requestId,
      time,
    }),
  ];
}
