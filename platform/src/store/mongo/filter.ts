import type { Document, Filter } from 'mongodb';
import { checkFilter, orderOf, type FindOptions, type Scalar } from '../store.ts';

export type Stored = Document & { _id: string };

/** MongoDB's own rules are the port's: null matches absent, `$ne` too, text goes by its UTF-8 bytes. @throws TypeError see checkFilter */
export function mongoFilter(filter: Readonly<Record<string, unknown>>): Filter<Stored> {
  checkFilter(filter);
  const terms = Object.entries(filter).map(([field, condition]) => [
    field,
    condition === null || typeof condition !== 'object' ? condition : operators(condition),
  ]);
  return Object.fromEntries(terms) as Filter<Stored>;
}

/** Lists are copied: the driver reads a filter when it sends it, perhaps later. */
const operators = (condition: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(condition).map(([operator, value]) => [`$${operator}`, Array.isArray(value) ? [...value] : value]),
  );

/** What a find sends. One document named by its `_id` needs no order. */
export function mongoFind(filter: Readonly<Record<string, unknown>>, options: FindOptions<never>) {
  const order = orderOf(options);
  const where = mongoFilter(filter);
  return {
    where: options.after === undefined ? where : ({ $and: [where, ...beyond(order, options.after)] } as Filter<Stored>),
    sort:
      typeof filter._id === 'string'
        ? undefined
        : order.map(([field, direction]): [string, 1 | -1] => [field, direction === 'asc' ? 1 : -1]),
    skip: options.skip ?? 0,
    limit: options.limit ?? 0,
  };
}

/** Beyond the last document seen: later in the first key, or level in it and later in the second, and so on. */
function beyond(order: ReturnType<typeof orderOf>, after: readonly Scalar[]): Document[] {
  const later = (place: number): '$gt' | '$lt' => (order[place]![1] === 'asc' ? '$gt' : '$lt');
  const level = (places: number): Document =>
    Object.fromEntries(order.slice(0, places).map(([field], place) => [field, after[place]]));
  const steps = order.map(([field], place) => ({ ...level(place), [field]: { [later(place)]: after[place] } }));
  // Implied by the steps; it tells the planner where in the index to begin.
  const begin = { [order[0]![0]]: { [`${later(0)}e`]: after[0] } };
  return [begin, { $or: steps }];
}
