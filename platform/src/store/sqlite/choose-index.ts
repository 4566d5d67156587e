import type { EngineIndex } from '../indexes.ts';
import type { Layout } from './layout.ts';

/** What each field counts that the filter fixes. */
const FIXED = 4;

type Fields = Readonly<Record<string, unknown>>;
type Order = readonly (readonly [field: string, direction: 'asc' | 'desc'])[];

/** SQLite's name of an index: a part of the documents makes it another one. */
export const indexName = ({ name, only }: EngineIndex): string => (only === undefined ? name : `${name} ${only}`);

/** True when the filter fixes the field to one value. */
export const isFixed = (filter: Fields, field: string): boolean =>
  field in filter && (filter[field] === null || typeof filter[field] !== 'object');

/**
 * `INDEXED BY …`, or nothing when the filter names ids or no index helps. SQLite knows nothing of the values that a
 * table has, so between two indexes it would guess: here, the one that fixes most fields wins, then the one in whose
 * order the documents are wanted, then the first declared.
 * @param order the sort fields
 */
export function indexedBy(layout: Layout, filter: Fields, order: readonly string[]): string {
  if (isFixed(filter, '_id') || isList(filter, '_id')) return '';
  let best: { index: EngineIndex; score: number } | undefined;
  for (const index of layout.indexes) {
    const score = scoreOf(index, filter, order);
    if (score > (best?.score ?? 0)) best = { index, score };
  }
  // A table of elements finds fewer documents than their organization has.
  if (goesByElements(layout, filter)) return '';
  return best === undefined ? '' : `INDEXED BY "${indexName(best.index)}"`;
}

/** True when the filter asks for documents by elements of a list, and an index of no other field finds them. */
export function goesByElements(layout: Layout, filter: Fields): boolean {
  const isAsked = layout.elements.some((field) => Object.keys(filter[field] ?? {}).join() === 'containsAny');
  return (
    isAsked &&
    isFixed(filter, 'organizationId') &&
    layout.indexes.every((index) => scoreOf(index, filter, []) < 2 * FIXED)
  );
}

export const isList = (filter: Fields, field: string): boolean =>
  typeof filter[field] === 'object' && Object.keys(filter[field] ?? {}).join() === 'in';

/**
 * The field with a list of values that comes right before the sort order in an index, after fields that the filter
 * fixes to one value. Without it, SQLite would sort all documents that match, or walk all of the organization.
 */
export function listBeforeOrder(layout: Layout, filter: Fields, order: Order): string | undefined {
  if (new Set(order.map(([, direction]) => direction)).size > 1) return undefined;
  const sorted = order.map(([field]) => field).join();
  return Object.keys(filter).find(
    (field) =>
      isList(filter, field) &&
      layout.indexes.some(({ columns, only }) => {
        const place = columns.indexOf(field);
        return (
          only === undefined &&
          place >= 0 &&
          columns.slice(0, place).every((before) => isFixed(filter, before)) &&
          columns.slice(place + 1).join() === sorted
        );
      }),
  );
}

/**
 * The index whose last field has few values, which the filter does not ask for: it comes right before the sort order,
 * after fields that the filter fixes to one value.
 */
export function fewBeforeOrder(layout: Layout, filter: Fields, order: Order): EngineIndex | undefined {
  if (isFixed(filter, '_id') || isList(filter, '_id')) return undefined;
  if (new Set(order.map(([, direction]) => direction)).size > 1) return undefined;
  const sorted = order.map(([field]) => field).join();
  const fitting = layout.indexes.filter(({ columns, fields, few }) => {
    const field = fields.at(-1)!;
    const place = columns.indexOf(field);
    const isReached = columns.slice(0, place).every((before) => isFixed(filter, before));
    return few && !(field in filter) && isReached && columns.slice(place + 1).join() === sorted;
  });
  return fitting.sort((one, other) => other.columns.length - one.columns.length)[0];
}

function scoreOf({ columns, unique, only }: EngineIndex, filter: Fields, order: readonly string[]): number {
  const [first] = columns as [string];
  if (only === 'null' && filter[first] !== null) return 0;
  if (only === 'present' && (!(first in filter) || !excludesNull(filter[first]))) return 0;
  let fixed = 0;
  while (fixed < columns.length && isFixed(filter, columns[fixed]!)) fixed++;
  if (unique && fixed === columns.length) return Infinity;
  const next = columns[fixed];
  const narrowed = next !== undefined && next in filter && excludesNull(filter[next]) ? 1 : 0;
  if (fixed + narrowed === 0) return 0;
  const inOrder = columns.slice(fixed, fixed + order.length).join() === order.join() ? 1 : 0;
  return FIXED * fixed + 2 * narrowed + inOrder;
}

const excludesNull = (condition: unknown): boolean =>
  condition !== null && (typeof condition !== 'object' || !('ne' in condition));
