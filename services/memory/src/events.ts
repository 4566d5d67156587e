import type { CallContext } from 'platform/rpc/call.ts';
import { changesOf, type AuditChanges } from 'platform/events/audit-changes.ts';
import { auditEntryOp, eventOp } from 'platform/events/outbox.ts';
import { actorOf, organizationOf } from 'platform/core/principal.ts';
import type { Op } from 'platform/store/store.ts';

const SOURCE = '/memory';

/** One change of a memory type or a memory object. `names` goes into the event's data. */
export type Change = {
  id: string;
  /** Revision of the changed record; a deletion counts as one more revision. It is the event's `sequence`. */
  revision: number;
  /** ISO-8601 UTC. */
  time: string;
  /** Which fields of a memory type changed, beside the revision. */
  changes?: AuditChanges;
} & (
  | {
      eventType: 'memory.type.created.v1' | 'memory.type.updated.v1' | 'memory.type.deleted.v1';
      names: { type: string; version: number };
    }
  | {
      eventType: 'memory.object.created.v1' | 'memory.object.updated.v1' | 'memory.object.deleted.v1';
      names: { typeId: string; type: string; key: string; schemaVersion: number };
      /** Stands in the change event, and never in the audit entry, where a setting wants it: JSON text. */
      content?: string | undefined;
    }
);

/** For each event type, the collection in its `subject`, and the action and target type of its audit entry. */
const KINDS: Record<Change['eventType'], { subjects: string; action: string; target: string }> = {
  'memory.type.created.v1': { subjects: 'types', action: 'memory_type.create', target: 'memory_type' },
  'memory.type.updated.v1': { subjects: 'types', action: 'memory_type.update', target: 'memory_type' },
  'memory.type.deleted.v1': { subjects: 'types', action: 'memory_type.delete', target: 'memory_type' },
  'memory.object.created.v1': { subjects: 'objects', action: 'memory_object.create', target: 'memory_object' },
  'memory.object.updated.v1': { subjects: 'objects', action: 'memory_object.update', target: 'memory_object' },
  'memory.object.deleted.v1': { subjects: 'objects', action: 'memory_object.delete', target: 'memory_object' },
};

/** The outbox inserts for the change event and the audit entry of a change; they belong in the batch of the change. */
export function changeEvents(context: Pick<CallContext, 'principal' | 'requestId'>, change: Change): Op[] {
  const { eventType, id, revision, time, names } = change;
  const content = 'content' in change ? change.content : undefined;
  const { subjects, action, target } = KINDS[eventType];
  const organizationId = organizationOf(context.principal);
  const actor = actorOf(context.principal);
  const { requestId } = context;
  return [
    eventOp({
      topic: 'memory.change.v1',
      source: SOURCE,
      type: eventType,
      organizationId,
      subject: `${subjects}/${id}`,
      sequence: revision,
      time,
      data: { id, ...names, revision, actor, requestId },
      ...(content !== undefined && { texts: { content } }),
    }),
    auditEntryOp({
      source: SOURCE,
      organizationId,
      action,
      outcome: 'success',
      actor,
      target: { type: target, id },
      changes: auditChanges(change),
      requestId,
      time,
    }),
  ];
}

/** The content for the change event of an object, as it is stored, unless it is larger than the setting allows. */
export const contentOfEvent = (
  object: { readonly content: string } | undefined,
  maxBytes: number,
): string | undefined => (object && Buffer.byteLength(object.content) <= maxBytes ? object.content : undefined);

/** A record has its type from its creation to its deletion; its first revision is 1. */
function auditChanges({ eventType, revision, names: { type }, changes }: Change): AuditChanges {
  if (eventType.endsWith('.created.v1')) return changesOf({}, { type });
  if (eventType.endsWith('.deleted.v1')) return changesOf({ type }, {});
  return { ...changesOf({ revision: revision - 1 }, { revision }), ...changes };
}
