import { segmentsOf, valueAt } from 'platform/core/json-pointer.ts';
import type { StoredRelation } from '../types/relations.ts';

/** The content, changed in place: null where a relation of one holds the key; out of the array where it is of many. */
export function withoutKey(
  content: Record<string, unknown>,
  nulled: readonly { relation: StoredRelation; key: string }[],
): Record<string, unknown> {
  for (const { relation, key } of nulled) {
    const names = segmentsOf(relation.path);
    const parent = names
      .slice(0, -1)
      .reduce((at: unknown, name) => (at as Record<string, unknown>)[name], content) as Record<string, unknown>;
    const name = names.at(-1)!;
    const value = valueAt(content, relation.path);
    parent[name] = relation.cardinality === 'many' ? (value as unknown[]).filter((one) => one !== key) : null;
  }
  return content;
}
