import type { ListMemoryObjectsRequest, ListMemoryObjectsResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { Deps } from '../deps.ts';
import { countOf, type Fence, type FenceStore } from '../types/fences.ts';
import { pageOf } from '../paging.ts';
import { foldType } from '../types/rules.ts';
import { visibleTo } from '../types/visibility.ts';
import { objectMessage } from './message.ts';
import type { ObjectFilter } from './store.ts';

type Used = Pick<Deps, 'objects' | 'fences' | 'usage' | 'config'>;

export async function listMemoryObjects(
  { objects, fences, usage, config }: Used,
  request: ListMemoryObjectsRequest,
  context: CallContext,
): Promise<ListMemoryObjectsResponse> {
  const organizationId = organizationOfCall(context);
  const { typeId, key } = request;
  if (typeId !== undefined && !isUuid(typeId)) throw invalid('/typeId', 'typeId must be a UUID');
  const page = pageOf(request, config);

  const chosen = await fencesOf(fences, request, context);
  const typeIds = chosen && [...new Set(chosen.map((fence) => fence.typeId))];
  if (typeIds?.length === 0) return { total: 0, items: [] };
  const ofTypes = typeIds && { typeId: typeIds.length === 1 ? typeIds[0] : { in: typeIds } };
  const filter: ObjectFilter = { ...ofTypes, ...(key === undefined ? {} : { key }) };

  const records = await objects.list(organizationId, filter, page);
  // A type has at most one object of a key, so to count them is cheap; all other totals are kept.
  const total =
    key !== undefined
      ? await objects.count(organizationId, filter)
      : chosen
        ? countOf(chosen)
        : await usage.objects(organizationId);
  const named = chosen ?? (await fences.ofTypes(organizationId, [...new Set(records.map((record) => record.typeId))]));
  const names = new Map(named.map((fence) => [fence.typeId, fence.type]));
  // A type that is gone by now went after its objects.
  return {
    total,
    items: records.flatMap((record) =>
      names.has(record.typeId) ? [objectMessage(record, names.get(record.typeId)!)] : [],
    ),
  };
}

/** All fences of the types that the list is about; undefined when it is about every type of the organization. */
async function fencesOf(
  fences: FenceStore,
  { typeId, type }: ListMemoryObjectsRequest,
  { principal }: CallContext,
): Promise<Fence[] | undefined> {
  const { organizationId } = principal;
  const visible = visibleTo(principal);
  if (typeId !== undefined || type !== undefined) {
    return fences.find(organizationId, {
      ...visible,
      ...(typeId === undefined ? {} : { typeId: typeId.toLowerCase() }),
      ...(type === undefined ? {} : { typeLower: foldType(type) }),
    });
  }
  const hides =
    visible.visibility !== undefined && (await fences.find(organizationId, { visibility: 'private' })).length > 0;
  return hides ? fences.find(organizationId, visible) : undefined;
}
