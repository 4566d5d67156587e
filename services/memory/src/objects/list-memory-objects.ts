import type { ListMemoryObjectsRequest, ListMemoryObjectsResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { Deps } from '../deps.ts';
import { pageOf } from '../request-members.ts';
import { objectCountOf, type FenceRecord, type Fences } from '../types/fences.ts';
import { foldTypeName, visibleTo } from '../types/rules.ts';
import { memoryObjectMessage } from './message.ts';
import { cursorOf, readCursor } from './cursor.ts';
import type { ObjectFilter } from './store.ts';

export async function listMemoryObjects(
  { objects, fences, usage, config }: Pick<Deps, 'objects' | 'fences' | 'usage' | 'config'>,
  request: ListMemoryObjectsRequest,
  context: CallContext,
): Promise<ListMemoryObjectsResponse> {
  const organizationId = organizationOfCall(context);
  const { typeId, key } = request;
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
  const cursor = request.cursor === undefined ? undefined : readCursor(request, organizationId);
  const page = pageOf(request, config);

  const typeFences = await fencesOfTypes(fences, request, context);
  const typeIds = typeFences && [...new Set(typeFences.map((fence) => fence.typeId))];
  if (typeIds?.length === 0) return { total: 0, items: [], nextCursor: undefined, prevCursor: undefined };
  const ofTypes = typeIds && { typeId: typeIds.length === 1 ? typeIds[0] : { in: typeIds } };
  const filter: ObjectFilter = { ...ofTypes, ...(key === undefined ? {} : { key }) };

  const { limit } = page;
  const { maxReplyBytes: maxBytes } = context;
  const records =
    cursor === undefined
      ? await objects.list(organizationId, filter, { ...page, maxBytes })
      : cursor.newer
        ? await objects.listNewer(organizationId, filter, cursor.id, { limit, maxBytes })
        : await objects.list(organizationId, filter, { limit, maxBytes, after: [cursor.id] });
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
  const [first, last] = [records[0]?._id, records.at(-1)?._id];
  const isFull = records.length === limit;
  const bare = { limit: 1, omit: ['content'] } as const;
  const older = async (id: string): Promise<boolean> =>
    (await objects.list(organizationId, filter, { ...bare, after: [id] })).length > 0;
  const newer = async (id: string): Promise<boolean> =>
    (await objects.listNewer(organizationId, filter, id, bare)).length > 0;
  const hasOlder =
    last !== undefined &&
    (cursor?.newer === true
      ? await older(last)
      : isFull && ((cursor === undefined && page.skip + limit < total) || (await older(last))));
  const hasNewer =
    first !== undefined &&
    (cursor === undefined ? page.skip > 0 : cursor.newer ? isFull && (await newer(first)) : await newer(first));
  return {
    nextCursor: hasOlder ? cursorOf(request, organizationId, last, 'older') : undefined,
    prevCursor: hasNewer ? cursorOf(request, organizationId, first, 'newer') : undefined,
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
