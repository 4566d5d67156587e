import type { IdSchema, UpdateMemoryObjectRequest, UpdateMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { isoTime } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import type { Deps } from '../deps.ts';
import { readJsonObject, requireMatch, requireUpdateMask } from '../request-members.ts';
import { requireType, type MemoryTypeRecord } from '../types/store.ts';
import { checkContent, derivedKey, keyHolder } from './content.ts';
import { memoryObjectMessage, memoryObjectTag } from './message.ts';
import { objectBytes, requireSameIdentity } from './rules.ts';
import { requireObject, type MemoryObjectRecord } from './store.ts';
import { liveRelations, requireReferences } from '../references/plan-references.ts';
import { writeObjects } from './write-objects.ts';

type Needs = Pick<
  Deps,
  'types' | 'objects' | 'groupedWrites' | 'references' | 'usage' | 'clock' | 'config' | 'mutex' | 'schedule' | 'schemas'
>;

export async function updateMemoryObject(
  deps: Needs,
  request: UpdateMemoryObjectRequest,
  context: CallContext,
): Promise<UpdateMemoryObjectResponse> {
  const { types, clock, config, mutex, schedule, schemas } = deps;
  const organizationId = organizationOfCall(context);
  const content = requireUpdateMask(request).includes('content')
    ? await schedule(organizationId, () => readJsonObject('content', request.content, config.MEMORY_CONTENT_MAX_BYTES))
    : undefined;

  const attempt = async (): Promise<UpdateMemoryObjectResponse> => {
    const { object: before, type: header } = await requireObject(deps, context, request.pathId);
    requireMatch(request, memoryObjectTag(before, header.type));
    const { _id: id, typeId, key } = before;
    requireSameIdentity(request, { id, typeId, type: header.type, key });
    if (content === undefined) return answer(before, header.type);

    const memoryType = await requireType(types, context, typeId);
    const { version, epoch } = memoryType;
    const isKept = await schedule(organizationId, () => {
      const derived = derivedKey(schemas, memoryType, content.value);
      return derived === undefined || (derived === key && keyHolder(memoryType, before, content.value) !== 'other');
    });
    if (!isKept) throw keyChanged(memoryType);
    const after = {
      ...before,
      content: content.text,
      schemaVersion: version,
      revision: before.revision + 1,
      bytes: objectBytes({ content: content.text, key }),
      updatedAt: isoTime(clock.now()),
    };
    // Under an ETag the name is the one that it was compared with.
    const type = { name: request.ifMatch === undefined ? memoryType.type : header.type, epoch };
    const expectName = request.ifMatch !== undefined;
    const check = () => schedule(organizationId, () => checkContent(schemas, memoryType, content.value, key));
    const hasReferences = liveRelations(memoryType).length > 0;
    if (hasReferences) await check();
    const references = await requireReferences(deps, memoryType, before, content.value);
    const writes = [{ before, after, time: after.updatedAt, type, references, expectName }];
    await writeObjects(deps, context, writes, hasReferences ? {} : { check });
    return answer(after, memoryType.type);
  };
  return mutex(organizationId, request.pathId.toLowerCase(), () => retryOnConflict(context.signal, attempt));
}

function keyChanged({ idSchema }: MemoryTypeRecord): ServiceError {
  const { properties } = parseJson(idSchema!) as IdSchema;
  const message = 'must stay as it is: the idSchema of the type makes the key of it';
  return new ServiceError('KEY_CHANGED', undefined, {
    details: properties.map((pointer) => ({ path: `/content${pointer}`, message })),
  });
}

const answer = (object: MemoryObjectRecord, type: string): UpdateMemoryObjectResponse => ({
  memoryObject: memoryObjectMessage(object, type),
  etag: memoryObjectTag(object, type),
});
