import { createHash } from 'node:crypto';
import { v7 } from 'uuid';
import type { CloudEvent } from 'platform/events/bus.ts';
import type { LedgerRow } from './ledger.ts';

/** The row itself: "credits.ledger.row.v1" about accounts/<organization>. */
export const rowEventOf = (organizationId: string, row: LedgerRow): CloudEvent =>
  eventOf(organizationId, row, 'credits.ledger.row.v1', `accounts/${organizationId}`, row.sequence, { ...row });

/** Who granted how much: an entry of the audit trail. */
export function auditEventOf(organizationId: string, row: LedgerRow): CloudEvent {
  const { id, actor, requestId } = row;
  const data = {
    action: 'credits.grant',
    outcome: 'success',
    actor,
    target: { type: 'grant', id },
    code: null,
    count: 1,
    requestId,
  };
  return eventOf(
    organizationId,
    row,
    'audit.entry.v1',
    `entries/${eventIdOf(organizationId, row, 'audit.entry.v1')}`,
    1,
    data,
  );
}

function eventOf(
  organizationId: string,
  row: LedgerRow,
  type: string,
  subject: string,
  sequence: number,
  data: Record<string, unknown>,
): CloudEvent {
  return {
    specversion: '1.0',
    id: eventIdOf(organizationId, row, type),
    source: '/credits',
    type,
    subject,
    time: row.createdAt,
    datacontenttype: 'application/json',
    organizationid: organizationId,
    partitionkey: organizationId,
    sequence,
    data,
  };
}

/** A UUIDv7 that follows from the row, so that a repeat carries the same one: the row's time, and a hash in place of chance. */
function eventIdOf(organizationId: string, { sequence, createdAt }: LedgerRow, type: string): string {
  const random = createHash('sha256')
    .update(JSON.stringify([organizationId, sequence, type]))
    .digest();
  return v7({ msecs: Date.parse(createdAt), random });
}
