import type { CallContext } from 'platform/rpc/call.ts';
import { auditOp } from 'platform/events/outbox.ts';
import { actorOf, organizationOf } from 'platform/core/principal.ts';
import type { Op } from 'platform/store/store.ts';

/** The audit entry that rides with a change of an agent. */
export const agentAudit = (
  context: CallContext,
  action: 'agent.apply' | 'agent.publish' | 'agent.retire',
  name: string,
  time: string,
): Op =>
  auditOp({
    source: '/agents',
    organizationId: organizationOf(context.principal),
    action,
    outcome: 'success',
    actor: actorOf(context.principal),
    target: { type: 'agent', id: name },
    requestId: context.requestId,
    time,
  });
