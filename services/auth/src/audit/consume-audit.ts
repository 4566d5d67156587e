import type { CloudEvent, EventBus, Subscription } from 'platform/events/bus.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { auditEntryOf } from './audit-event.ts';
import type { AuditEntries } from './store.ts';

/** The consumer group: the replicas of auth share the events. */
export const AUDIT_GROUP = 'auth-audit';

/** Nobody waits for the consumer; a member that stops finishes its batch first. */
const NEVER_ABORTED = new AbortController().signal;

/**
 * Appends the entries of events to the trails of their organizations; idempotent. Events may arrive in any order,
 * because a relay that has lost its lease may still send. That does no harm: an entry never changes, so the `sequence`
 * of an event is not read.
 * @throws RejectedEventError when one of them is not an audit entry that its source may write; nothing is stored then
 */
export async function storeAuditEvents(
  { auditEntries }: { auditEntries: AuditEntries },
  events: readonly CloudEvent[],
): Promise<void> {
  const entries = events.map(auditEntryOf);
  await retryOnConflict(NEVER_ABORTED, () => auditEntries.append(entries));
}

/**
 * Stores the audit events of all services, many in one batch; one by one when that fails. One that is rejected becomes
 * a dead letter at once. One that cannot be stored is tried again every second, and becomes a dead letter after ten
 * minutes.
 */
export const consumeAudit = (deps: { auditEntries: AuditEntries }, bus: EventBus): Promise<Subscription> =>
  bus.subscribe('audit.v1', AUDIT_GROUP, (event) => storeAuditEvents(deps, [event]), {
    maxAttempts: 600,
    retryDelayMs: 1_000,
    handleTogether: (events) => storeAuditEvents(deps, events),
  });
