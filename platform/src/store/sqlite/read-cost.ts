import { completeSort } from '../checks.ts';
import type { FindOptions } from '../store.ts';
import { DOCUMENT, LOOK, STATEMENT } from '../turns.ts';
import { fewBeforeOrder, isFixed, isList, listBeforeOrder } from './choose-index.ts';
import type { EngineIndex } from '../indexes.ts';
import type { Layout } from './layout.ts';

type Fields = Readonly<Record<string, unknown>>;

/** More than may be read at once. */
export const UNKNOWN = Number.MAX_SAFE_INTEGER;
/** The most values of an index with `few`. */
const FEW = 10;

/**
 * What the statement of a find may cost at most, in entries (turns.ts); UNKNOWN when it must read or sort documents
 * that it does not return.
 */
export function mostOf(layout: Layout, filter: Fields, options: FindOptions<never>): number {
  const { limit = Infinity, skip = 0 } = options;
  const named = documentsNamed(layout, filter);
  if (named !== undefined) return STATEMENT + named * (LOOK + DOCUMENT);
  const order = completeSort(options);
  const passed = skip + limit;
  const list = listBeforeOrder(layout, filter, order);
  const cost =
    list !== undefined
      ? (filter[list] as { in: readonly unknown[] }).in.length * (LOOK + passed)
      : fewBeforeOrder(layout, filter, order)
        ? FEW * (LOOK + passed)
        : isInOrder(layout, filter, order.map(([field]) => field)) // prettier-ignore
          ? passed
          : UNKNOWN;
  return Math.min(UNKNOWN, STATEMENT + cost + DOCUMENT * limit);
}

/** How many documents there can be, because the filter has their ids or keys. */
function documentsNamed(layout: Layout, filter: Fields): number | undefined {
  const keys = [['_id'], ...layout.indexes.filter(({ unique }) => unique).map(({ columns }) => columns)];
  const counts = keys
    .filter((key) => key.every((field) => isFixed(filter, field) || isList(filter, field)))
    .map((key) =>
      key.reduce((product, field) => product * (isFixed(filter, field) ? 1 : listed(filter, field).length), 1),
    );
  return counts.length === 0 ? undefined : Math.min(...counts);
}

const listed = (filter: Fields, field: string): readonly unknown[] => (filter[field] as { in: readonly unknown[] }).in;

/** True when an index has the documents that match, no others, and has them in this order. */
export const isInOrder = (layout: Layout, filter: Fields, order: readonly string[]): boolean =>
  layout.indexes.some((index) => findsNoOthers(index, filter, isRange) && isOrderOf(index, filter, order));

/** True when an index has the documents that match, and no others. */
export const isFound = (layout: Layout, filter: Fields): boolean =>
  layout.indexes.some((index) => findsNoOthers(index, filter, (condition) => isRange(condition) || isIn(condition)));

const fixedBy = ({ columns }: EngineIndex, filter: Fields): number => {
  const place = columns.findIndex((column) => !isFixed(filter, column));
  return place === -1 ? columns.length : place;
};

function findsNoOthers(index: EngineIndex, filter: Fields, isServed: (condition: unknown) => boolean): boolean {
  const fixed = fixedBy(index, filter);
  const others = Object.keys(filter).filter((field) => !index.columns.slice(0, fixed).includes(field));
  return index.only === undefined && others.every((field) => field === index.columns[fixed] && isServed(filter[field]));
}

const operatorsOf = (condition: unknown): string[] =>
  typeof condition === 'object' && condition !== null ? Object.keys(condition) : ['is'];
const isIn = (condition: unknown): boolean => operatorsOf(condition).join() === 'in';
const isRange = (condition: unknown): boolean =>
  operatorsOf(condition).every((operator) => ['gt', 'gte', 'lt', 'lte'].includes(operator));

function isOrderOf(index: EngineIndex, filter: Fields, order: readonly string[]): boolean {
  const fixed = fixedBy(index, filter);
  return index.columns.slice(fixed, fixed + order.length).join() === order.join();
}
