import type { CloudEvent, EventBus, Subscription } from 'platform/events/bus.ts';
import { DuplicateKeyError } from 'platform/store/store.ts';
import { auditEntryOf } from './audit-event.ts';
import type { AuditEntries } from './store.ts';

/** The consumer group: the replicas of auth share the events. */
export const AUDIT_GROUP = 'auth-audit';

/**
 * Stores the entry of one event; idempotent. Events may arrive in any order, because a relay that has lost its lease
 * may still send. That does no harm: an entry never changes, so `sequence` is not read.
 * @throws RejectedEventError when it is not an audit entry that its source may write
 */
export async function storeAuditEvent(
  { auditEntries }: { auditEntries: AuditEntries },
  event: CloudEvent,
): Promise<void> {
  await auditEntries.create(auditEntryOf(event)).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
}

/**
 * Stores the audit events of all services, many in one batch; one by one when that fails. One that is rejected becomes
 * a dead letter at once. One that cannot be stored is tried again every second, and becomes a dead letter after ten
 * minutes.
 */
export const consumeAudit = (deps: { auditEntries: AuditEntries }, bus: EventBus): Promise<Subscription> =>
  bus.subscribe('audit.v1', AUDIT_GROUP, (event) => storeAuditEvent(deps, event), {
    maxAttempts: 600,
    retryDelayMs: 1_000,
    handleTogether: (events) => deps.auditEntries.createAll(events.map(auditEntryOf)),
  });
