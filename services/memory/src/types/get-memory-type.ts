import type { GetMemoryTypeRequest, GetMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { memoryTypeMessage, memoryTypeTag } from './message.ts';
import { requireType } from './store.ts';

export async function getMemoryType(
  { types, changes }: Pick<Deps, 'types' | 'changes'>,
  { id }: GetMemoryTypeRequest,
  context: CallContext,
): Promise<GetMemoryTypeResponse> {
  const type = await requireType(types, context, id);
  const change = await changes.byType(type.organizationId, type._id);
  return { memoryType: memoryTypeMessage(type, change), etag: memoryTypeTag(type, change) };
}
