import { hash } from 'node:crypto';
import { idOf } from 'platform/core/ids.ts';
import { changesOf } from 'platform/events/audit-changes.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import type { LedgerRow } from './ledger/ledger.ts';

/** The change event of a row: type "credits.ledger.row.v1", subject "accounts/<organization>". */
export const ledgerRowEvent = (organizationId: string, row: LedgerRow): CloudEvent =>
  event(organizationId, row, 'credits.ledger.row.v1', `accounts/${organizationId}`, row.sequence, { ...row });

/** The audit entry of a GRANT row: who granted it, in which request. */
export function grantAuditEntry(organizationId: string, row: LedgerRow): CloudEvent {
  const { id, actor, requestId, availableMicros, availableDeltaMicros } = row;
  const data = {
    action: 'credits.grant',
    outcome: 'success',
    actor,
    target: { type: 'grant', id },
    changes: changesOf({ availableMicros: availableMicros - availableDeltaMicros }, { availableMicros }),
    code: null,
    count: 1,
    requestId,
  };
  const subject = `entries/${eventIdOf(organizationId, row, 'audit.entry.v1')}`;
  return event(organizationId, row, 'audit.entry.v1', subject, 1, data);
}

function event(
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

/**
 * A UUIDv7 derived from the row, so that publishing the row again produces the same id: the row's time, and a hash in
 * place of the random bits.
 */
function eventIdOf(organizationId: string, { sequence, createdAt }: LedgerRow, type: string): string {
  const random = hash('sha256', JSON.stringify([organizationId, sequence, type]), 'buffer');
  return idOf(Date.parse(createdAt), random);
}
