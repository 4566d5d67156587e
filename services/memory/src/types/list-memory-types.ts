import type { ListMemoryTypesRequest, ListMemoryTypesResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { agree, findWithChange } from '../changes/type-with-change.ts';
import type { Deps } from '../deps.ts';
import { pageOf } from '../request-members.ts';
import { relationNames } from './relation-names.ts';
import { memoryTypeMessage } from './message.ts';
import { visibleTo } from './rules.ts';

/** All types of the organization; one page of them when the request has page or pageSize. */
export async function listMemoryTypes(
  { types, changes, config, schedule }: Pick<Deps, 'types' | 'changes' | 'config' | 'schedule'>,
  request: ListMemoryTypesRequest,
  context: CallContext,
): Promise<ListMemoryTypesResponse> {
  const all = request.page === undefined && request.pageSize === undefined;
  const organizationId = organizationOfCall(context);
  const records = await types.list(organizationId, visibleTo(context.principal), {
    ...(all ? {} : pageOf(request, config)),
    maxBytes: context.maxReplyBytes,
  });
  const lastChanges = await changes.ofTypes(
    organizationId,
    records.map(({ _id }) => _id),
  );
  const changeOf = new Map(lastChanges.map((change) => [change._id, change]));
  const items = await Promise.all(
    records.map(async (type) => {
      const found = { type, change: changeOf.get(type._id) };
      return agree(found) ? found : findWithChange({ types, changes }, context, type._id);
    }),
  );
  const found = items.filter((item) => item !== undefined);
  const names = await relationNames(
    { types },
    found.map(({ type }) => type),
  );
  // There may be thousands.
  return schedule(organizationId, () => ({
    items: found.map(({ type, change }) => memoryTypeMessage(type, change, names)),
  }));
}
