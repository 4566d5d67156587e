import { strict as assert } from 'node:assert';
import { newId } from '../core/ids.ts';
import type { Actor } from '../core/principal.ts';
import { collection, insert, type Document, type Op } from '../store/store.ts';
import { isSampled, traceparent } from '../telemetry/traces.ts';
import type { AuditChanges } from './audit-changes.ts';
import { MAX_EVENT_BYTES, type CloudEvent, type Topic } from './bus.ts';

/**
 * An event that waits in the store of its service; the relay removes it when the bus has accepted it. It is written
 * with the event's id as `_id`: a UUIDv7, which rises within a process, so that also on MongoDB the order of `_id` is
 * the order of writing.
 */
export interface OutboxRecord extends Document {
  organizationId: string;
  topic: Topic;
  /** The CloudEvent as JSON text. */
  event: string;
}

export const OUTBOX = collection<OutboxRecord>('outbox', {
  scope: 'platform',
  queue: ['organizationId', 'topic', 'event'],
});

export interface NewEvent {
  topic: Topic;
  source: string;
  type: string;
  organizationId: string;
  subject: string;
  sequence: number;
  time: string;
  data: Record<string, unknown>;
  /** Further members of `data`, each as JSON text, which is spliced in as it is. */
  texts?: Readonly<Record<string, string>>;
}

/** Inserts the event of a change into the outbox. Goes into the same batch (`apply`) as the change. */
export const eventOp = (event: NewEvent): Op => insertOp(newId(), event);

export interface NewAuditEntry {
  /** The service: "/auth". */
  source: string;
  organizationId: string;
  /** "server_token.revoke" ... */
  action: string;
  outcome: 'success' | 'denied' | 'failure';
  actor: Actor;
  target?: { type: string; id: string };
  /** What a change changed (`changesOf`). */
  changes?: AuditChanges;
  /** Error code of a denial or failure. */
  code?: string;
  /** How many equal requests this entry stands for; default 1. */
  count?: number;
  requestId: string;
  /** ISO-8601 UTC. */
  time: string;
}

/** Inserts an audit entry into the outbox: an event on topic audit.v1 whose subject is the entry itself. */
export function auditEntryOp({
  source,
  organizationId,
  action,
  outcome,
  actor,
  target,
  changes = {},
  code,
  count = 1,
  requestId,
  time,
}: NewAuditEntry): Op {
  const id = newId();
  const changed = Object.keys(changes).length > 0 && { changes };
  const data = { action, outcome, actor, target: target ?? null, ...changed, code: code ?? null, count, requestId };
  return insertOp(id, {
    topic: 'audit.v1',
    source,
    type: 'audit.entry.v1',
    organizationId,
    subject: `entries/${id}`,
    sequence: 1,
    time,
    data,
  });
}

function insertOp(
  id: string,
  { topic, source, type, organizationId, subject, sequence, time, data, texts = {} }: NewEvent,
): Op {
  const event: CloudEvent = {
    specversion: '1.0',
    id,
    source,
    type,
    subject,
    time,
    datacontenttype: 'application/json',
    organizationid: organizationId,
    partitionkey: organizationId,
    sequence,
    ...(isSampled() && { traceparent: traceparent() }),
    data,
  };
  const spliced = Object.entries(texts).map(([name, json]) => `,${JSON.stringify(name)}:${json}`);
  assert.ok(spliced.length === 0 || Object.keys(data).length > 0, 'nothing stands before the spliced members');
  const text = `${JSON.stringify(event).slice(0, -'}}'.length)}${spliced.join('')}}}`;
  // An event that no broker accepts would stay in the outbox for ever.
  assert.ok(
    Buffer.byteLength(text) <= MAX_EVENT_BYTES,
    `an event of type ${type} is larger than ${MAX_EVENT_BYTES} bytes`,
  );
  return insert(OUTBOX, { _id: id, organizationId, topic, event: text });
}
