import { update, type Op } from 'platform/store/store.ts';
import { OBJECTS } from '../objects/store.ts';
import { removeReference, type ReferenceRecord } from './store.ts';

/** A batch that removes references that mean nothing any more, while both ends stay; it counts them at both. */
export function endReferences(ended: readonly ReferenceRecord[]): Op[] {
  const counts = new Map<string, { references: number; referrers: number }>();
  const countOf = (id: string) => counts.get(id) ?? counts.set(id, { references: 0, referrers: 0 }).get(id)!;
  for (const { sourceId, targetId } of ended) {
    countOf(sourceId).references -= 1;
    countOf(targetId).referrers -= 1;
  }
  return [
    ...ended.map(removeReference),
    ...[...counts].map(([_id, increment]) => update(OBJECTS, { _id }, { increment })),
  ];
}
