import type { ListMemoryTypesRequest, ListMemoryTypesResponse } from 'proto/memory/v1/memory.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { pageOf } from '../request-members.ts';
import { memoryTypeMessage } from './message.ts';
import { visibleTo } from './rules.ts';

/** All types of the organization; one page of them when the request has page or pageSize. */
export async function listMemoryTypes(
  { types, config }: Pick<Deps, 'types' | 'config'>,
  request: ListMemoryTypesRequest,
  context: CallContext,
): Promise<ListMemoryTypesResponse> {
  const all = request.page === undefined && request.pageSize === undefined;
  const records = await types.list(organizationOfCall(context), visibleTo(context.principal), {
    ...(all ? {} : pageOf(request, config)),
    maxBytes: context.maxReplyBytes,
  });
  return { items: records.map(memoryTypeMessage) };
}
