import type { Collection, Index } from './store.ts';

/** An index as an engine makes it. Its name contains the whole definition: a changed definition is another index. */
export interface EngineIndex extends Pick<Index<never>, 'only' | 'elements' | 'few'> {
  name: string;
  /** As declared, without organizationId: what DuplicateKeyError names. */
  fields: readonly string[];
  columns: readonly string[];
  unique: boolean;
}

/** The indexes of a collection as an engine makes them, without the primary key. */
export function indexesOf({ name, scope, indexes, platformIndexes }: Collection<never>): EngineIndex[] {
  const prefix = scope === 'organization' ? ['organizationId'] : [];
  const declared = [
    ...indexes.map((index) => ({ ...index, all: [...prefix, ...index.fields] })),
    ...platformIndexes.map((index) => ({ ...index, all: index.fields })),
  ];
  return declared.map(({ fields, all, unique = false, only, elements, few }) => {
    if (few && (unique || only !== undefined || elements))
      throw new Error(`${name}: an index with few values has neither unique, only nor elements`);
    // A unique index has the declared fields only. The others end with _id, so that one index serves a page and its
    // order.
    const columns = unique ? all : [...all.filter((field) => field !== '_id'), '_id'];
    const engineIndex = { name: `${name}(${columns.join(',')})${unique ? ' unique' : ''}`, fields, columns, unique };
    return {
      ...engineIndex,
      ...(only !== undefined && { only }),
      ...(elements && { elements }),
      ...(few && { few }),
    };
  });
}

/** For queries that do not ask for the last field. */
export function withoutLastField(collection: string, { fields, columns }: EngineIndex): EngineIndex {
  const others = columns.filter((column) => column !== fields.at(-1));
  return {
    name: `${collection}(${others.join(',')})`,
    fields: fields.slice(0, -1),
    columns: others,
    unique: false,
  };
}
