import type { Deps } from '../deps.ts';
import { relationsOf } from './relations.ts';
import type { MemoryTypeRecord } from './store.ts';

/** By id, the present names of the types that the relations of these types point to. */
export async function relationNames(
  { types: store }: Pick<Deps, 'types'>,
  types: readonly MemoryTypeRecord[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(types.flatMap((type) => relationsOf(type).map(({ targetTypeId }) => targetTypeId)))];
  const [first] = types;
  const headers = first && ids.length > 0 ? await store.headers(first.organizationId, { _id: { in: ids } }) : [];
  return new Map(headers.map(({ _id, type }) => [_id, type]));
}
