import type { Violation } from 'platform/core/errors.ts';
import { valueAt } from 'platform/core/json-pointer.ts';
import type { StoredRelation } from '../types/relations.ts';

/** Of one object. */
const MAX_REFERENCES = 100;
const TOO_MANY = `must not hold more than ${MAX_REFERENCES} keys of memory objects`;

/** A key in a content, which must be that of an object. */
export interface Wanted {
  relation: StoredRelation;
  /** JSON pointer of the key in the request. */
  at: string;
  key: string;
}

/** The keys in a content, and what is wrong with their form. */
export function wantedReferences(
  relations: readonly StoredRelation[],
  content: Record<string, unknown>,
): { wanted: Wanted[]; violations: Violation[] } {
  const wanted: Wanted[] = [];
  const violations: Violation[] = [];
  for (const relation of relations) {
    const { name, path, cardinality, required } = relation;
    const at = `/content${path}`;
    const value = valueAt(content, path) ?? undefined;
    const isMany = cardinality === 'many';
    if (value === undefined || (isMany && Array.isArray(value) && value.length === 0)) {
      if (required) violations.push({ path: at, message: `must hold a key: the relation "${name}" is required` });
    } else if (isMany && !Array.isArray(value))
      violations.push({ path: at, message: `must be an array of keys: the relation "${name}" is of many` });
    // One that is too long is not looked into: a content has room for 40,000 keys.
    else if (isMany && (value as unknown[]).length > MAX_REFERENCES) violations.push({ path: at, message: TOO_MANY });
    else {
      const seen = new Set<string>();
      (isMany ? (value as unknown[]) : [value]).forEach((key, index) => {
        const place = isMany ? `${at}/${index}` : at;
        if (typeof key !== 'string') violations.push({ path: place, message: 'must be the key of a memory object' });
        else if (seen.has(key)) violations.push({ path: place, message: 'must not be given twice' });
        else wanted.push({ relation, at: place, key });
        if (typeof key === 'string') seen.add(key);
      });
    }
  }
  if (wanted.length > MAX_REFERENCES) violations.push({ path: '/content', message: TOO_MANY });
  return { wanted: wanted.slice(0, MAX_REFERENCES), violations: violations.slice(0, MAX_REFERENCES) };
}
