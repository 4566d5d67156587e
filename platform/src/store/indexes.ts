import type { Collection } from './store.ts';

/** An index as an engine makes it. The name says all of the definition, so a changed definition is another index. */
export interface EngineIndex {
  name: string;
  /** What DuplicateKeyError names: as declared, without organizationId. */
  fields: readonly string[];
  columns: readonly string[];
  unique: boolean;
}

/** The indexes of a collection, the primary key apart. */
export function indexesOf({ name, scope, indexes, platformIndexes }: Collection<never>): EngineIndex[] {
  const prefix = scope === 'organization' ? ['organizationId'] : [];
  const declared = [
    ...indexes.map((index) => ({ ...index, all: [...prefix, ...index.fields] })),
    ...platformIndexes.map((index) => ({ ...index, all: index.fields })),
  ];
  return declared.map(({ fields, all, unique = false }) => {
    // A unique index ends where it is declared to; the others end with _id, so that one index serves a page and its order.
    const columns = unique ? all : [...all.filter((field) => field !== '_id'), '_id'];
    return { name: `${name}(${columns.join(',')})${unique ? ' unique' : ''}`, fields, columns, unique };
  });
}
