import type { GetMemoryObjectRequest, GetMemoryObjectResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { memoryObjectMessage, memoryObjectTag } from './message.ts';
import { requireObject } from './store.ts';

export async function getMemoryObject(
  deps: Pick<Deps, 'objects' | 'types'>,
  { id }: GetMemoryObjectRequest,
  context: CallContext,
): Promise<GetMemoryObjectResponse> {
  const { object, type: header } = await requireObject(deps, context, id);
  return { memoryObject: memoryObjectMessage(object, header.type), etag: memoryObjectTag(object, header.type) };
}
