import type { DatabaseSync } from 'node:sqlite';

/** How many rows each table has, by name. */
export function rowsOfTables(db: DatabaseSync): Record<string, number> {
  const tables = db
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name",
    )
    .all()
    .map(({ name }) => String(name));
  return Object.fromEntries(
    tables.map((name) => [
      name,
      Number(db.prepare(`SELECT count(*) AS n FROM "${name.replaceAll('"', '""')}"`).get()!.n),
    ]),
  );
}
