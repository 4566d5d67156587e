import type { DatabaseSync } from 'node:sqlite';
import { REST, type Layout } from './layout.ts';

/**
 * SQLite has no index over the elements of a list. For each list field with such an index there is a table of elements,
 * which triggers keep as the documents are: so `containsAny` reads the documents that match, and no others.
 */
export const elementsTable = ({ name }: Layout, field: string): string => `${name}.${field}`;

/** Makes missing tables of elements, and drops those that are no longer declared. @param isNew the documents' table */
export function prepareElements(db: DatabaseSync, layout: Layout, isNew: boolean): void {
  const present = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? || '.%'")
    .all(layout.name)
    .map(({ name }) => name as string);
  const wanted = layout.elements.map((field) => elementsTable(layout, field));
  for (const table of present) if (isNew || !wanted.includes(table)) dropElements(db, table);
  for (const field of layout.elements)
    if (isNew || !present.includes(elementsTable(layout, field))) makeElements(db, layout, field);
}

function dropElements(db: DatabaseSync, table: string): void {
  for (const event of ['insert', 'update', 'delete']) db.exec(`DROP TRIGGER IF EXISTS "${table} ${event}"`);
  db.exec(`DROP TABLE "${table}"`);
}

function makeElements(db: DatabaseSync, layout: Layout, field: string): void {
  const table = elementsTable(layout, field);
  const elementsOf = (row: string): string => `json_each(${row}."${REST}", '$.${field}') AS each`;
  const insert = (row: string, from: string): string =>
    `INSERT OR IGNORE INTO "${table}" SELECT ${row}."organizationId", each.value, ${row}."_id" FROM ${from}`;
  const removal =
    `DELETE FROM "${table}" WHERE "organizationId" = old."organizationId" AND "_id" = old."_id" ` +
    `AND element IN (SELECT each.value FROM ${elementsOf('old')})`;
  const insertion = insert('new', elementsOf('new'));
  const trigger = (event: string, on: string, statements: string[]): string =>
    `CREATE TRIGGER "${table} ${event}" AFTER ${on} ON "${layout.name}" BEGIN ${statements.join('; ')}; END`;
  db.exec(
    `CREATE TABLE "${table}" ("organizationId", element, "_id", PRIMARY KEY ("organizationId", element, "_id")) ` +
      'WITHOUT ROWID',
  );
  db.exec(insert(`"${layout.name}"`, `"${layout.name}", ${elementsOf(`"${layout.name}"`)}`));
  db.exec(trigger('insert', 'INSERT', [insertion]));
  db.exec(trigger('update', `UPDATE OF "${REST}"`, [removal, insertion]));
  db.exec(trigger('delete', 'DELETE', [removal]));
}
