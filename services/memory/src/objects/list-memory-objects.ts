import type { ListMemoryObjectsRequest, ListMemoryObjectsResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { Deps } from '../deps.ts';
import { pageOf } from '../request-members.ts';
import { objectCountOf, type FenceRecord, type Fences } from '../types/fences.ts';
import { foldTypeName, visibleTo } from '../types/rules.ts';
import { memoryObjectMessage } from './message.ts';
import type { ObjectFilter } from './store.ts';

export async function listMemoryObjects(
  { objects, fences, usage, config }: Pick<Deps, 'objects' | 'fences' | 'usage' | 'config'>,
  request: ListMemoryObjectsRequest,
  context: CallContext,
): Promise<ListMemoryObjectsResponse> {
  const organizationId = organizationOfCall(context);
  const { typeId, key } = request;
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
  const page = pageOf(request, config);

  const typeFences = await fencesOfTypes(fences, request, context);
  const typeIds = typeFences && [...new Set(typeFences.map((fence) => fence.typeId))];
  if (typeIds?.length === 0) return { total: 0, items: [] };
  const ofTypes = typeIds && { typeId: typeIds.length === 1 ? typeIds[0] : { in: typeIds } };
  const filter: ObjectFilter = { ...ofTypes, ...(key === undefined ? {} : { key }) };

  const records = await objects.list(organizationId, filter, { ...page, maxBytes: context.maxReplyBytes });
  // Counting by key is cheap, because a type has at most one object with the key. All other totals are stored.
  const total =
    key !== undefined
      ? await objects.count(organizationId, filter)
      : typeFences
        ? objectCountOf(typeFences)
        : await usage.objectCount(organizationId);
  const fencesOfItems =
    typeFences ?? (await fences.ofTypes(organizationId, [...new Set(records.map((record) => record.typeId))]));
  const typeNames = new Map(fencesOfItems.map((fence) => [fence.typeId, fence.type]));
  return {
    total,
    // A type that has no fence was deleted after the objects were read, so its objects are gone, too: leave them out.
    items: records.flatMap((record) => {
      const type = typeNames.get(record.typeId);
      return type === undefined ? [] : [memoryObjectMessage(record, type)];
    }),
  };
}

/** All fences of the types whose objects the list may contain; undefined for every type of the organization. */
async function fencesOfTypes(
  fences: Fences,
  { typeId, type }: ListMemoryObjectsRequest,
  { principal }: CallContext,
): Promise<FenceRecord[] | undefined> {
  const { organizationId } = principal;
  const visible = visibleTo(principal);
  if (typeId !== undefined || type !== undefined) {
    return fences.find(organizationId, {
      ...visible,
      ...(typeId === undefined ? {} : { typeId: typeId.toLowerCase() }),
      ...(type === undefined ? {} : { typeLower: foldTypeName(type) }),
    });
  }
  if (visible.audience === undefined) return undefined;
  const [all, seen] = [await fences.countTypes(organizationId, {}), await fences.countTypes(organizationId, visible)];
  return seen < all ? fences.find(organizationId, visible) : undefined;
}
