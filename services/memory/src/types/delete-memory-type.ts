import type { DeleteMemoryTypeRequest, DeleteMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { isAdmin } from 'platform/core/principal.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { carryOutForAWhile, startChange } from '../changes/start-change.ts';
import { forgetChangeOp, type TypeChangeRecord } from '../changes/store.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { objectCountOf } from './fences.ts';
import { relationNames } from './relation-names.ts';
import { inTurnOfTypes, releaseTargets } from './relation-ops.ts';
import { memoryTypeMessage, requireTypeMatch } from './message.ts';
import { requireActive } from './rules.ts';
import { requireType, type MemoryTypeRecord } from './store.ts';

type Needs = Parameters<typeof startChange>[0] & Pick<Deps, 'mutex'>;

export async function deleteMemoryType(
  deps: Needs,
  request: DeleteMemoryTypeRequest,
  context: CallContext,
): Promise<DeleteMemoryTypeResponse> {
  const { cascade = false } = request;
  if (cascade && !isAdmin(context.principal)) throw new ServiceError('ADMIN_REQUIRED');
  const { mutex } = deps;
  const organizationId = organizationOfCall(context);
  const { type, change } = await mutex(organizationId, request.id.toLowerCase(), () =>
    inTurnOfTypes(mutex, organizationId, () => retryOnConflict(context.signal, () => attempt(deps, request, context))),
  );
  const ended = change && (await carryOutForAWhile(deps, context, change));
  if (!ended || ended.state === 'done')
    return { deleted: { success: true, id: type._id }, memoryType: undefined, outcome: 'DONE' };
  if (ended.state !== 'running') throw new ServiceError('CONFLICT', 'The deletion was cancelled');
  return {
    deleted: undefined,
    memoryType: memoryTypeMessage({ ...type, state: 'deleting' }, ended, await relationNames(deps, [type])),
    outcome: 'ACCEPTED',
  };
}

/** Deletes a type without objects; announces the deletion of one with objects. */
async function attempt(
  deps: Needs,
  request: DeleteMemoryTypeRequest,
  context: CallContext,
): Promise<{ type: MemoryTypeRecord; change?: TypeChangeRecord }> {
  const { types, fences, usage, clock } = deps;
  const before = await requireType(types, context, request.id);
  const { _id, organizationId, type, version, jsonSchema, revision, bytes = 0 } = before;
  const names = await relationNames(deps, [before]);
  requireTypeMatch(request, before, names);
  requireActive(before);
  const typeFences = await fences.ofType(organizationId, _id);
  const count = objectCountOf(typeFences);
  if (before.dependents)
    throw new ServiceError('TYPE_IN_USE', 'Relations of other memory types point to the memory type');
  if (count > 0 && !request.cascade) throw new ServiceError('TYPE_IN_USE', undefined, { facts: { count } });
  if (count > 0)
    return { type: before, change: await startChange(deps, context, { action: 'delete', before, of: count }) };

  const events = changeEvents(context, {
    eventType: 'memory.type.deleted.v1',
    id: _id,
    revision: revision + 1,
    time: isoTime(clock.now()),
    names: { type, version },
  });
  await types.remove(before, typeFences, [
    usage.removeType(organizationId, { schemaBytes: Buffer.byteLength(jsonSchema), bytes }),
    forgetChangeOp(_id),
    ...releaseTargets(before.relationTargets ?? []),
    ...events,
  ]);
  return { type: before };
}
