import type { CallContext } from 'platform/rpc/call.ts';
import type { AuditChanges } from 'platform/events/audit-changes.ts';
import { auditEntryOp } from 'platform/events/outbox.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Op } from 'platform/store/store.ts';

/** The CloudEvents `source` of everything that this service publishes. */
const SOURCE = '/auth';

/**
 * The audit entry of a successful change, as an operation for the batch that makes the change, so that both are
 * written or neither. Its actor is the call's principal.
 * @param time ISO-8601 UTC
 */
export const auditEntry = (
  context: CallContext,
  organizationId: string,
  action: string,
  target: { type: string; id: string },
  time: string,
  changes: AuditChanges = {},
): Op =>
  auditEntryOp({
    source: SOURCE,
    organizationId,
    action,
    outcome: 'success',
    actor: actorOf(context.principal),
    target,
    changes,
    requestId: context.requestId,
    time,
  });
