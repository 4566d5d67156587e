import type { AuditFacts } from 'platform/events/outbox.ts';
import type { CloudEvent, EventBus, Subscription } from 'platform/events/bus.ts';
import { DuplicateKeyError } from 'platform/store/store.ts';
import type { AuditTrail } from './store.ts';

/** `data` of an event on audit.v1, as auditOp writes it. */
type AuditData = Pick<AuditFacts, 'action' | 'outcome' | 'actor' | 'requestId'> & {
  target: { type: string; id: string } | null;
  code: string | null;
  count: number;
};

export const AUDIT_GROUP = 'auth-audit';

/**
 * Keeps the entry of one event; a repeat of it changes nothing. Each entry is a subject of its own and is never changed, so
 * the order in which events arrive says nothing here, and `sequence` is not looked at: an old relay may send late.
 */
export async function storeAuditEvent({ auditTrail }: { auditTrail: AuditTrail }, event: CloudEvent): Promise<void> {
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
  await auditTrail.insert(entry).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
}

/** Every service's audit events, once each. A store that does not answer is waited for, ten minutes an event, before it is a dead letter. */
export const consumeAudit = (deps: { auditTrail: AuditTrail }, bus: EventBus): Promise<Subscription> =>
  bus.subscribe('audit.v1', AUDIT_GROUP, (event) => storeAuditEvent(deps, event), {
    maxAttempts: 600,
    retryDelayMs: 1_000,
  });
