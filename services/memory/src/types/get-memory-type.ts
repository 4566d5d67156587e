import type { GetMemoryTypeRequest, GetMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { requireWithChange } from '../changes/type-with-change.ts';
import type { Deps } from '../deps.ts';
import { relationNames } from './relation-names.ts';
import { memoryTypeMessage, memoryTypeTag } from './message.ts';

export async function getMemoryType(
  deps: Pick<Deps, 'types' | 'changes'>,
  { id }: GetMemoryTypeRequest,
  context: CallContext,
): Promise<GetMemoryTypeResponse> {
  const { type, change } = await requireWithChange(deps, context, id);
  const names = await relationNames(deps, [type]);
  return { memoryType: memoryTypeMessage(type, change, names), etag: memoryTypeTag(type, change, names) };
}
