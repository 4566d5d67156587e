import type { DeleteMemoryTypeRequest, DeleteMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { changeEvents } from '../events.ts';
import type { Deps } from '../deps.ts';
import { requireMatch } from '../request-members.ts';
import { objectCountOf } from './fences.ts';
import { memoryTypeTag } from './message.ts';
import { requireType } from './store.ts';

export async function deleteMemoryType(
  { types, fences, usage, clock, mutex }: Pick<Deps, 'types' | 'fences' | 'usage' | 'clock' | 'mutex'>,
  request: DeleteMemoryTypeRequest,
  context: CallContext,
): Promise<DeleteMemoryTypeResponse> {
  const attempt = async (): Promise<string> => {
    const record = await requireType(types, context, request.id);
    requireMatch(request, memoryTypeTag(record));
    const { _id, organizationId, type, version, jsonSchema, revision, bytes = 0 } = record;
    const typeFences = await fences.find(organizationId, { typeId: _id });
    const count = objectCountOf(typeFences);
    if (count > 0) throw new ServiceError('TYPE_IN_USE', undefined, { facts: { count } });

    const events = changeEvents(context, {
      eventType: 'memory.type.deleted.v1',
      id: _id,
      revision: revision + 1,
      time: isoTime(clock.now()),
      names: { type, version },
    });
    await types.remove(record, typeFences, [
      usage.removeType(organizationId, { schemaBytes: Buffer.byteLength(jsonSchema), bytes }),
      ...events,
    ]);
    return _id;
  };
  const id = await mutex(organizationOfCall(context), request.id.toLowerCase(), () =>
    retryOnConflict(context.signal, attempt),
  );
  return { success: true, id };
}
