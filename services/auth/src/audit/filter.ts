import type { ListAuditEntriesRequest } from 'proto/auth/v1/auth.ts';
import { isoTime, requireTime } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import type { Filter } from 'platform/store/store.ts';
import { DENIED, MAY_FAIL, OUTCOMES } from './audit-event.ts';
import type { AuditEntryRecord } from './store.ts';

/**
 * The entries that a request asks for.
 * @param actorIds the ids of `actor`
 * @throws ServiceError INVALID_REQUEST
 */
export function requireFilter(
  {
    action,
    resource,
    outcome,
    since,
    until,
  }: Pick<ListAuditEntriesRequest, 'action' | 'resource' | 'outcome' | 'since' | 'until'>,
  actorIds: readonly string[] | undefined,
): Filter<AuditEntryRecord> {
  if (outcome && !OUTCOMES.includes(outcome)) throw invalid('/outcome', `must be one of ${OUTCOMES.join(', ')}`);
  if (resource && (resource.type === '' || resource.id === ''))
    throw invalid('/resource', 'must have a type and an id');
  const at = {
    ...(since && { gte: isoTime(requireTime('/since', since)) }),
    ...(until && { lt: isoTime(requireTime('/until', until)) }),
  };
  const isNarrow = resource !== undefined || actorIds !== undefined;
  return {
    ...actionFilter(action, outcome ?? '', isNarrow),
    ...(actorIds && { actorId: actorIds.length === 1 ? actorIds[0]! : { in: actorIds } }),
    ...(resource && { targetType: resource.type, targetId: resource.id }),
    ...(Object.keys(at).length > 0 && { at }),
  };
}

/** One index serves actions and outcomes. It is left alone when another one finds fewer entries. */
function actionFilter(action: string, outcome: string, isNarrow: boolean): Filter<AuditEntryRecord> {
  if (action !== '') return { action, ...(outcome ? { outcome } : !isNarrow && { outcome: { in: OUTCOMES } }) };
  if (outcome === 'denied') return { action: DENIED, outcome };
  if (outcome === 'failure') return { action: MAY_FAIL, outcome };
  return outcome === '' ? {} : { outcome };
}
