import type { Document, Filter } from 'mongodb';
import { checkFilter, completeSort } from '../checks.ts';
import type { FindOptions, Scalar } from '../store.ts';

export type Stored = Document & { _id: string };

/**
 * MongoDB compares values as the port demands: null equals an absent field, for `$ne` too, and text is ordered by its
 * UTF-8 bytes.
 * @throws TypeError see checkFilter
 */
export function mongoFilter(filter: Readonly<Record<string, unknown>>): Filter<Stored> {
  checkFilter(filter);
  const terms = Object.entries(filter).map(([field, condition]) => [
    field,
    condition === null || typeof condition !== 'object' ? condition : operators(condition),
  ]);
  return Object.fromEntries(terms) as Filter<Stored>;
}

/** Copies lists: the driver reads a filter when it sends it; the caller may have changed the list by then. */
const operators = (condition: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(condition).map(([operator, value]) => [
      // Of a list, `$in` compares the elements.
      operator === 'containsAny' ? '$in' : `$${operator}`,
      Array.isArray(value) ? [...value] : value,
    ]),
  );

/** The arguments of a find. A filter by one `_id` needs no sort order. */
export function mongoFind(filter: Readonly<Record<string, unknown>>, options: FindOptions<never>) {
  const order = completeSort(options);
  const where = mongoFilter(filter);
  return {
    where:
      options.after === undefined ? where : ({ $and: [where, ...afterLast(order, options.after)] } as Filter<Stored>),
    sort:
      typeof filter._id === 'string'
        ? undefined
        : order.map(([field, direction]): [string, 1 | -1] => [field, direction === 'asc' ? 1 : -1]),
    ...(options.omit && { projection: Object.fromEntries(options.omit.map((field) => [field, 0])) }),
    skip: options.skip ?? 0,
    limit: options.limit ?? 0,
  };
}

/** After the last document seen: later in the first sort field, or equal in it and later in the second, and so on. */
function afterLast(order: ReturnType<typeof completeSort>, after: readonly Scalar[]): Document[] {
  const later = (place: number): '$gt' | '$lt' => (order[place]![1] === 'asc' ? '$gt' : '$lt');
  const equal = (places: number): Document =>
    Object.fromEntries(order.slice(0, places).map(([field], place) => [field, after[place]]));
  const alternatives = order.map(([field], place) => ({ ...equal(place), [field]: { [later(place)]: after[place] } }));
  // The alternatives imply this; it lets the query planner begin at the right place of the index.
  const begin = { [order[0]![0]]: { [`${later(0)}e`]: after[0] } };
  return [begin, { $or: alternatives }];
}
