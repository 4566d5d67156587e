import type { ListMemoryObjectsRequest, ListMemoryObjectsResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { Deps } from '../deps.ts';
import { pageOf } from '../request-members.ts';
import { named, visibleTo } from '../types/rules.ts';
import type { TypeHeader } from '../types/store.ts';
import { memoryObjectMessage } from './message.ts';
import { cursorOf, readCursor } from './cursor.ts';
import type { ObjectFilter } from './store.ts';

export async function listMemoryObjects(
  deps: Pick<Deps, 'objects' | 'types' | 'fences' | 'usage' | 'config'>,
  request: ListMemoryObjectsRequest,
  context: CallContext,
): Promise<ListMemoryObjectsResponse> {
  const { objects, types, fences, usage, config } = deps;
  const organizationId = organizationOfCall(context);
  const { typeId, key } = request;
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
  const cursor = request.cursor === undefined ? undefined : readCursor(request, organizationId);
  const page = pageOf(request, config);

  const headers = await headersOf(deps, request, context);
  const typeIds = headers?.map(({ _id }) => _id);
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
      : typeIds
        ? await fences.countObjects(organizationId, typeIds)
        : await usage.objectCount(organizationId);
  const typesOfItems =
    headers ?? (await types.headers(organizationId, { _id: { in: [...new Set(records.map((one) => one.typeId))] } }));
  const typeNames = new Map(typesOfItems.map(({ _id, type }) => [_id, type]));
  const [first, last] = [records[0]?._id, records.at(-1)?._id];
  const isFull = records.length === limit;
  const bare = { limit: 1, omit: ['content'] } as const;
  const older = async (id: string): Promise<boolean> =>
    (await objects.list(organizationId, filter, { ...bare, after: [id] })).length > 0;
  const newer = async (id: string): Promise<boolean> =>
    (await objects.listNewer(organizationId, filter, id, bare)).length > 0;
  // A page is short at the end of the list, or because an object was deleted while it was read.
  const isEnd = cursor === undefined && !isFull && page.skip + records.length >= total;
  const goesOn = cursor === undefined && isFull && page.skip + limit < total;
  const hasOlder = last !== undefined && !isEnd && (goesOn || (await older(last)));
  const hasNewer = first !== undefined && (cursor === undefined ? page.skip > 0 : await newer(first));
  return {
    nextCursor: hasOlder ? cursorOf(request, organizationId, last, 'older') : undefined,
    prevCursor: hasNewer ? cursorOf(request, organizationId, first, 'newer') : undefined,
    total,
    // A type without a header was deleted after the objects were read, so its objects are gone, too: leave them out.
    items: records.flatMap((record) => {
      const type = typeNames.get(record.typeId);
      return type === undefined ? [] : [memoryObjectMessage(record, type)];
    }),
  };
}

/** The types whose objects the list may contain; undefined for every type of the organization. */
async function headersOf(
  { types, usage }: Pick<Deps, 'types' | 'usage'>,
  { typeId, type }: ListMemoryObjectsRequest,
  { principal }: CallContext,
): Promise<TypeHeader[] | undefined> {
  const { organizationId } = principal;
  const visible = visibleTo(principal);
  if (typeId !== undefined || type !== undefined) {
    return types.headers(organizationId, {
      ...(type === undefined ? visible : named(type, visible)),
      ...(typeId === undefined ? {} : { _id: typeId.toLowerCase() }),
    });
  }
  if (Object.keys(visible).length === 0) return undefined;
  // Where nothing is hidden, the objects need no filter. A type that is created between the counts may hide another.
  const before = await usage.typeCounts(organizationId);
  const seen = await types.count(organizationId, visible);
  const after = await usage.typeCounts(organizationId);
  const isAll = seen === before.types && seen === after.types && before.typesCreated === after.typesCreated;
  return isAll ? undefined : types.headers(organizationId, visible);
}
