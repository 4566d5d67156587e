import type { CallContext } from 'platform/rpc/call.ts';
import { auditOp } from 'platform/events/outbox.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Op } from 'platform/store/store.ts';

export const SOURCE = '/auth';

/** The audit entry of a change that was made, for the batch of the change itself. `time` is ISO-8601. */
export const audited = (
  context: CallContext,
  organizationId: string,
  action: string,
  target: { type: string; id: string },
  time: string,
): Op =>
  auditOp({
    source: SOURCE,
    organizationId,
    action,
    outcome: 'success',
    actor: actorOf(context.principal),
    target,
    requestId: context.requestId,
    time,
  });
