import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Prepares a statement, or takes it from a cache. */
export type Prepare = (sql: string) => StatementSync;

/**
 * What follows LIMIT. SQLite compiles a statement again whenever a plain placeholder there is given a value, even the
 * same one.
 */
export const LIMIT_VALUE = 'CAST(? AS INTEGER)';

const MAX_STATEMENTS = 500;

/** Prepares each statement once. @param rows as arrays they cost a third of what they cost as objects */
export function statementCache(db: DatabaseSync, rows: 'arrays' | 'objects'): Prepare {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= MAX_STATEMENTS) statements.delete(statements.keys().next().value!);
      statement = db.prepare(sql);
      statement.setReturnArrays(rows === 'arrays');
      statements.set(sql, statement);
    }
    return statement;
  };
}
