import type { DatabaseSync } from 'node:sqlite';
import type { EngineIndex } from '../indexes.ts';
import type { Collection } from '../store.ts';
import { prepareElements } from './elements.ts';
import { indexName } from './choose-index.ts';
import { cellsOf, documentOf, layoutOf, REST, type Layout } from './layout.ts';
import { isQueue, prepareQueue } from './queue.ts';

function indexSql(table: string, index: EngineIndex): string {
  const columns = index.columns.map((column) => `"${column}"`);
  const where = { null: ` WHERE ${columns[0]} IS NULL`, present: ` WHERE ${columns[0]} IS NOT NULL` };
  return (
    `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS "${indexName(index)}" ON "${table}"(${columns.join(', ')})` +
    (index.only === undefined ? '' : where[index.only])
  );
}

/**
 * Makes missing tables and indexes, drops indexes that are no longer declared, and rewrites the tables that another
 * release made with other columns. All of it is one transaction: a process that dies meanwhile leaves the file as it
 * was.
 */
export function prepareTables(db: DatabaseSync, collections: readonly Collection<never>[]): void {
  const tables = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?");
  const indexes = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
  );
  db.exec('BEGIN IMMEDIATE');
  for (const collection of collections) {
    if (isQueue(collection)) {
      prepareQueue(db, collection);
      continue;
    }
    const layout = layoutOf(collection);
    const present = tables.get(layout.name);
    const isSame = present !== undefined && layout.isTable(present.sql as string);
    if (present === undefined) db.exec(layout.tableSql);
    else if (!isSame) rewriteTable(db, layout);
    for (const { name } of indexes.all(layout.name))
      if (!layout.indexes.some((index) => indexName(index) === name)) db.exec(`DROP INDEX "${name as string}"`);
    for (const index of layout.indexes) db.exec(indexSql(layout.name, index));
    prepareElements(db, layout, !isSame);
  }
  db.exec('COMMIT');
}

/**
 * Columns are named like their fields. In a file of the first release, `id` is `_id`, and `doc` has all fields; it may
 * have ids in upper case, which auth took from audit events.
 */
function rewriteTable(db: DatabaseSync, layout: Layout): void {
  const before = `~${layout.name}`;
  db.exec(`ALTER TABLE "${layout.name}" RENAME TO "${before}"`);
  db.exec(layout.tableSql);
  const insert = db.prepare(layout.insertSql);
  for (const row of db.prepare(`SELECT * FROM "${before}" ORDER BY rowid`).iterate())
    insert.run(
      ...cellsOf(layout, withIdsInLowerCase(documentOf('_id' in row ? row : { _id: row.id, [REST]: row.doc }))),
    );
  db.exec(`DROP TABLE "${before}"`);

  function withIdsInLowerCase(document: Record<string, unknown>): Record<string, unknown> {
    for (const field of layout.fields)
      if (layout.kindOf(field) === 'id' && typeof document[field] === 'string')
        document[field] = document[field].toLowerCase();
    return document;
  }
}
