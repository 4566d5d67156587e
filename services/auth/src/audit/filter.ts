import type { ListAuditEntriesRequest } from 'proto/auth/v1/auth.ts';
import { isoTime } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { Filter } from 'platform/store/store.ts';
import { OUTCOMES } from './audit-event.ts';
import type { AuditEntryRecord } from './store.ts';

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** The entries that a request asks for. @throws ServiceError INVALID_REQUEST */
export function requireFilter({
  action,
  actor,
  resource,
  outcome,
  since,
  until,
}: Omit<ListAuditEntriesRequest, 'pageSize' | 'beforeId'>): Filter<AuditEntryRecord> {
  if (outcome && !OUTCOMES.includes(outcome)) throw invalid('/outcome', `must be one of ${OUTCOMES.join(', ')}`);
  if (resource && (resource.type === '' || resource.id === ''))
    throw invalid('/resource', 'must have a type and an id');
  const at = {
    ...(since && { gte: requireTime('/since', since) }),
    ...(until && { lt: requireTime('/until', until) }),
  };
  return {
    ...(action && { action }),
    ...(actor && (isUuid(actor) ? { actorId: actor.toLowerCase() } : { actorName: actor })),
    ...(resource && { targetType: resource.type, targetId: resource.id }),
    ...(outcome && { outcome }),
    ...(Object.keys(at).length > 0 && { at }),
  };
}

function requireTime(path: string, text: string): string {
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw invalid(path, 'must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z');
  return isoTime(ms);
}
