import { isUuid } from 'platform/core/ids.ts';
import { MAX_CHANGED_FIELDS, MAX_CHANGES_BYTES, type AuditChanges } from 'platform/events/audit-changes.ts';
import { RejectedEventError, type CloudEvent } from 'platform/events/bus.ts';
import type { AuditEntryRecord } from './store.ts';

export const DENIED = 'request.refused';
/** What may end with the outcome `failure`. */
export const MAY_FAIL = 'agent.run';

/** By source of an event: the actions that it may report. docs/events.md has the same table. */
export const ACTIONS_OF: ReadonlyMap<string, readonly string[]> = new Map([
  [
    '/auth',
    [
      ...['organization.create', 'organization.activate', 'organization.deactivate', 'organization.set_tier'],
      ...['user.create', 'user.remove', 'user.set_roles', 'user.set_groups', 'user.assume'],
      ...['server_token.create', 'server_token.rotate', 'server_token.revoke', 'jwt.issue', 'grant.revoke', DENIED],
    ],
  ],
  [
    '/agents',
    [
      ...['agent.apply', 'agent.publish', 'agent.retire', 'agent.run', 'agent.cancel_run'],
      ...['secret.set', 'secret.delete', DENIED],
    ],
  ],
  [
    '/memory',
    [
      ...['memory_type.create', 'memory_type.update', 'memory_type.delete'],
      ...['memory_object.create', 'memory_object.update', 'memory_object.delete', DENIED],
    ],
  ],
  ['/credits', ['credits.grant']],
]);
const ACTOR_KINDS = ['server_token', 'user', 'operator', 'service', 'agent_execution'];
export const OUTCOMES = ['success', 'failure', 'denied'];
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const MAX_COUNT = 2 ** 31 - 1;

/** The `data` of an event on topic audit.v1, as `auditEntryOp` of platform writes it. */
interface AuditData extends Pick<AuditEntryRecord, 'action' | 'outcome' | 'code' | 'count' | 'requestId'> {
  actor: { kind: string; id: string; name: string; via: string };
  target: { type: string; id: string } | null;
  changes?: AuditChanges;
}

/**
 * The audit entry that an event reports. Nothing in an event proves who wrote it (ADR 21), so an event is taken only if
 * a service of this name writes such entries, and if the entry can be listed.
 * @throws RejectedEventError
 */
export function auditEntryOf(event: CloudEvent): AuditEntryRecord {
  const { id, organizationid, time } = event;
  const { action, outcome, actor, target, changes, code, count, requestId } = checkedData(event);
  return {
    _id: id,
    organizationId: organizationid,
    at: time,
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
    ...(changes && { changes: JSON.stringify(changes) }),
  };
}

function checkedData(event: Readonly<Partial<Record<keyof CloudEvent, unknown>>>): AuditData {
  const { id, source, type, organizationid, partitionkey, time } = event;
  const data = membersOf(event.data);
  const { action, outcome, target, changes, code, count, requestId } = data;
  const actor = membersOf(data.actor);
  const checks = {
    type: type === 'audit.entry.v1',
    id: isText(id) && isUuid(id) && id === id.toLowerCase(),
    organizationid: isText(organizationid) && organizationid !== '' && organizationid === partitionkey,
    time: isText(time) && TIME.test(time) && !Number.isNaN(Date.parse(time)),
    action: ACTIONS_OF.get(source as string)?.includes(action as string),
    outcome:
      OUTCOMES.includes(outcome as string) &&
      (outcome === 'denied') === (action === DENIED) &&
      (outcome !== 'failure' || action === MAY_FAIL),
    actor: ACTOR_KINDS.includes(actor.kind as string) && [actor.id, actor.name, actor.via].every(isText),
    target: target === null || [membersOf(target).type, membersOf(target).id].every(isText),
    changes: changes === undefined || areChanges(changes),
    code: code === null || isText(code),
    count: Number.isInteger(count) && (count as number) >= 1 && (count as number) <= MAX_COUNT,
    requestId: isText(requestId),
  };
  const wrong = Object.entries(checks).filter(([, isRight]) => !isRight);
  if (wrong.length > 0)
    throw new RejectedEventError(`not an audit entry of a service: ${wrong.map(([member]) => member).join(', ')}`);
  return data as unknown as AuditData;
}

/** By field: the value before and the value after. */
function areChanges(changes: unknown): boolean {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) return false;
  const fields = Object.entries(changes as Record<string, unknown>);
  return (
    fields.length > 0 &&
    fields.length <= MAX_CHANGED_FIELDS &&
    fields.every(([, pair]) => Array.isArray(pair) && pair.length === 2 && pair.every(isValue)) &&
    Buffer.byteLength(JSON.stringify(changes)) <= MAX_CHANGES_BYTES
  );
}
const isValue = (value: unknown): boolean =>
  value === null ||
  ['string', 'number', 'boolean'].includes(typeof value) ||
  (Array.isArray(value) && value.every(isText));

const isText = (value: unknown): value is string => typeof value === 'string';
const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
