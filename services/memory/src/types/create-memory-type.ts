import type { CreateMemoryTypeRequest, CreateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { invalid } from 'platform/core/errors.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import { changeOps } from '../events.ts';
import type { Deps } from '../deps.ts';
import type { Visibility } from './visibility.ts';
import { typeMessage } from './message.ts';
import { requireFreeName } from './names.ts';
import { checkFields, foldType, refuseLaterMembers } from './rules.ts';
import { soundSchema } from './schema.ts';
import type { MemoryTypeRecord } from './store.ts';

export async function createMemoryType(
  { types, usage, config, schedule, mutex }: Pick<Deps, 'types' | 'usage' | 'config' | 'schedule' | 'mutex'>,
  request: CreateMemoryTypeRequest,
  context: CallContext,
): Promise<CreateMemoryTypeResponse> {
  const organizationId = organizationOfCall(context);
  refuseLaterMembers(request);
  checkFields(request);
  const { type, displayName, description = '', visibility = 'organization' } = request;
  if (type === undefined) throw invalid('/type', 'type is required');
  const jsonSchema = await soundSchema(schedule, organizationId, request.jsonSchema, config.MEMORY_SCHEMA_MAX_BYTES);

  const id = newId();
  const createdAt = isoTime(timeOfId(id));
  const record: MemoryTypeRecord = {
    _id: id,
    organizationId,
    type,
    typeLower: foldType(type),
    displayName: displayName ?? type,
    description,
    visibility: visibility as Visibility,
    version: 1,
    jsonSchema,
    idSchema: null,
    embeddingSchema: null,
    groupNames: [],
    relations: '[]',
    state: 'active',
    epoch: 1,
    revision: 1,
    createdAt,
    updatedAt: createdAt,
  };
  const change = changeOps(context, {
    noun: 'type',
    verb: 'create',
    id,
    revision: 1,
    time: createdAt,
    names: { type, version: 1 },
  });
  const round = async (): Promise<void> => {
    await requireFreeName(types, context.principal, organizationId, type);
    const counted = await usage.addType(
      organizationId,
      context.principal,
      Buffer.byteLength(jsonSchema),
      config.MEMORY_SCHEMAS_MAX_BYTES,
    );
    await types.create(record, [counted, ...change]);
  };
  // all types of an organization are counted in one row
  await mutex(organizationId, () => retryOnConflict(context.signal, round));
  return { memoryType: typeMessage(record), outcome: 'CREATED', location: `/api/memory/types/${id}` };
}
