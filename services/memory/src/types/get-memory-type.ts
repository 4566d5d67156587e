import type { GetMemoryTypeRequest, GetMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { requireType } from './find.ts';
import { typeMessage } from './message.ts';

export async function getMemoryType(
  { types }: Pick<Deps, 'types'>,
  { id }: GetMemoryTypeRequest,
  context: CallContext,
): Promise<GetMemoryTypeResponse> {
  return { memoryType: typeMessage(await requireType(types, context, id)) };
}
