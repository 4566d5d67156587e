import type { NewAuditEntry } from 'platform/events/outbox.ts';
import type { CloudEvent, EventBus, Subscription } from 'platform/events/bus.ts';
import { DuplicateKeyError } from 'platform/store/store.ts';
import type { AuditEntries } from './store.ts';

/** The `data` of an event on topic audit.v1, as `auditEntryOp` of platform writes it. */
type AuditData = Pick<NewAuditEntry, 'action' | 'outcome' | 'actor' | 'requestId'> & {
  target: { type: string; id: string } | null;
  code: string | null;
  count: number;
};

/** The consumer group: the replicas of auth share the events. */
export const AUDIT_GROUP = 'auth-audit';

/**
 * Stores the entry of one event; idempotent. Events may arrive in any order, because a relay that has lost its lease
 * may still send. That does no harm: an entry never changes, so `sequence` is not read.
 */
export async function storeAuditEvent(
  { auditEntries }: { auditEntries: AuditEntries },
  event: CloudEvent,
): Promise<void> {
  const { action, outcome, actor, target, code, count, requestId } = event.data as AuditData;
  const entry = {
    _id: event.id,
    organizationId: event.organizationid,
    at: event.time,
    action,
    outcome,
    actorKind: actor.kind,
    actorId: actor.id,
    actorName: actor.name,
    actorVia: actor.via,
    targetType: target === null ? null : target.type,
    targetId: target === null ? null : target.id,
    code,
    count,
    requestId,
  };
  await auditEntries.create(entry).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
}

/**
 * Stores the audit events of all services. An event that cannot be stored is tried again every second, and becomes a
 * dead letter after ten minutes.
 */
export const consumeAudit = (deps: { auditEntries: AuditEntries }, bus: EventBus): Promise<Subscription> =>
  bus.subscribe('audit.v1', AUDIT_GROUP, (event) => storeAuditEvent(deps, event), {
    maxAttempts: 600,
    retryDelayMs: 1_000,
  });
