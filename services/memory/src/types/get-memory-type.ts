import type { GetMemoryTypeRequest, GetMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { memoryTypeMessage, memoryTypeTag } from './message.ts';
import { requireType } from './store.ts';

export async function getMemoryType(
  { types }: Pick<Deps, 'types'>,
  { id }: GetMemoryTypeRequest,
  context: CallContext,
): Promise<GetMemoryTypeResponse> {
  const type = await requireType(types, context, id);
  return { memoryType: memoryTypeMessage(type), etag: memoryTypeTag(type) };
}
