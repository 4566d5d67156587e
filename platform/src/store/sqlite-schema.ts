import type { DatabaseSync } from 'node:sqlite';
import { column } from './sqlite-sql.ts';
import type { Collection } from './store.ts';

interface TableIndex {
  name: string;
  /** As declared, without organizationId. */
  fields: readonly string[];
  sql: string;
}

/** The indexes of a collection; the name says all of the definition, so a changed definition is another index. */
export function indexesOf({ name, scope, indexes, platformIndexes }: Collection<never>): TableIndex[] {
  const prefix = scope === 'organization' ? ['organizationId'] : [];
  const declared = [...indexes.map((index) => ({ ...index, all: [...prefix, ...index.fields] })), ...platformIndexes.map((index) => ({ ...index, all: index.fields }))];
  return declared.map(({ fields, all, unique }) => {
    // A unique index ends where it is declared to; the others end with id, so that one index serves a page and its order.
    const columns = unique ? all : [...all.filter((field) => field !== '_id'), '_id'];
    const indexName = `${name}(${columns.join(',')})${unique ? ' unique' : ''}`;
    return { name: indexName, fields, sql: `CREATE ${unique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS "${indexName}" ON "${name}"(${columns.map(column).join(', ')})` };
  });
}

/** Makes the missing tables and indexes, and drops the indexes that are no longer declared, in one transaction. */
export function createTables(db: DatabaseSync, collections: readonly Collection<never>[]): void {
  const present = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL");
  db.exec('BEGIN IMMEDIATE');
  for (const collection of collections) {
    const declared = indexesOf(collection);
    // A rowid table: three times faster to list and twenty times faster to count than WITHOUT ROWID.
    db.exec(`CREATE TABLE IF NOT EXISTS "${collection.name}" (id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL)`);
    for (const { name } of present.all(collection.name)) if (!declared.some((index) => index.name === name)) db.exec(`DROP INDEX "${name}"`);
    for (const { sql } of declared) db.exec(sql);
  }
  db.exec('COMMIT');
}
