import { strict as assert } from 'node:assert';
import { newId } from '../core/ids.ts';
import type { Actor } from '../core/principal.ts';
import { collection, insert, type Document, type Op } from '../store/store.ts';
import { MAX_EVENT_BYTES, type CloudEvent, type Topic } from './bus.ts';

/** An event that waits in its service's store for the relay; its removal is the acknowledgement. */
export interface OutboxRow extends Document {
  organizationId: string;
  topic: Topic;
  /** The CloudEvent as JSON text. Its id is `_id`: a UUIDv7, rising within a process, so that `_id` order is the order of writing. */
  event: string;
}

export const OUTBOX = collection<OutboxRow>('outbox', { scope: 'platform', platformIndexes: [{ fields: ['topic'] }] });

export interface NewEvent {
  topic: Topic;
  source: string;
  type: string;
  organizationId: string;
  subject: string;
  sequence: number;
  time: string;
  data: Record<string, unknown>;
}

/** The outbox entry of a change: rides in the `apply` of the change itself. */
export const outboxOp = (event: NewEvent): Op => rowOf(newId(), event);

export interface AuditFacts {
  /** The service: "/auth". */
  source: string;
  organizationId: string;
  /** "server_token.revoke" ... */
  action: string;
  outcome: 'success' | 'denied' | 'failure';
  actor: Actor;
  target?: { type: string; id: string };
  /** Code of the refusal or failure. */
  code?: string;
  /** How many alike this entry stands for; default 1. */
  count?: number;
  requestId: string;
  /** ISO-8601 UTC. */
  time: string;
}

/** An audit entry: an event on topic audit.v1 that is its own subject. */
export function auditOp({
  source,
  organizationId,
  action,
  outcome,
  actor,
  target,
  code,
  count = 1,
  requestId,
  time,
}: AuditFacts): Op {
  const id = newId();
  const data = { action, outcome, actor, target: target ?? null, code: code ?? null, count, requestId };
  return rowOf(id, {
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

function rowOf(id: string, { topic, source, type, organizationId, subject, sequence, time, data }: NewEvent): Op {
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
    data,
  };
  const text = JSON.stringify(event);
  // one that no broker takes would wait for ever
  assert.ok(
    Buffer.byteLength(text) <= MAX_EVENT_BYTES,
    `an event of type ${type} is larger than ${MAX_EVENT_BYTES} bytes`,
  );
  return insert(OUTBOX, { _id: id, organizationId, topic, event: text });
}
