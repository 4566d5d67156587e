import type { DeleteMemoryTypeRequest, DeleteMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { changeOps } from '../events.ts';
import { refuseIfMatch } from '../conditions.ts';
import type { Deps } from '../deps.ts';
import { countOf } from './fences.ts';
import { requireType } from './find.ts';

type Used = Pick<Deps, 'types' | 'fences' | 'usage' | 'clock' | 'mutex'>;

export async function deleteMemoryType(
  { types, fences, usage, clock, mutex }: Used,
  request: DeleteMemoryTypeRequest,
  context: CallContext,
): Promise<DeleteMemoryTypeResponse> {
  refuseIfMatch(request);
  const round = async (): Promise<string> => {
    const record = await requireType(types, context, request.id);
    const { _id, organizationId, type, version, jsonSchema, revision } = record;
    const present = await fences.find(organizationId, { typeId: _id });
    const count = countOf(present);
    if (count > 0) throw new ServiceError('TYPE_IN_USE', undefined, { facts: { count } });

    const change = changeOps(context, {
      noun: 'type',
      verb: 'delete',
      id: _id,
      revision: revision + 1,
      time: isoTime(clock.now()),
      names: { type, version },
    });
    await types.remove(record, present, [usage.removeType(organizationId, Buffer.byteLength(jsonSchema)), ...change]);
    return _id;
  };
  return { success: true, id: await mutex(request.id, () => retryOnConflict(context.signal, round)) };
}
