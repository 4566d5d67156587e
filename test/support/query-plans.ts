import { DatabaseSync } from 'node:sqlite';

/** Notes the statements on tables that SQLite stores prepare from now on. */
export function recordStatements(): { sql: string[]; stop(): void } {
  const sql: string[] = [];
  const prepare = Object.getOwnPropertyDescriptor(DatabaseSync.prototype, 'prepare')!;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, text: string) {
    if (/^(SELECT|UPDATE|DELETE) .*"/.test(text) && !text.includes('sqlite_schema')) sql.push(text);
    return (prepare.value as DatabaseSync['prepare']).call(this, text);
  };
  return { sql, stop: () => Object.defineProperty(DatabaseSync.prototype, 'prepare', prepare) };
}

interface Step {
  id: number;
  parent: number;
  detail: string;
}

/** A page made of the first documents of each value of a field: as many of each as the page has, by an index. */
const PAGE_OF_PAGES =
  /AS listed CROSS JOIN "\w+" AS page ON page\.rowid IN \(SELECT rowid FROM .* LIMIT .*\) ORDER BY page\./;

/**
 * Whether it reads a whole table or index, or sorts more than such pages. What it may scan are lists of values, and
 * what a part of the statement has found to be counted.
 */
function isCostly(sql: string, plan: readonly Step[]): boolean {
  const ofOneValue = plan.filter(({ detail }) => detail.startsWith('CORRELATED LIST SUBQUERY')).map(({ id }) => id);
  return plan.some(
    ({ detail, parent }) =>
      /^SCAN (?!listed|present|counted|json_each|CONSTANT ROW)/.test(detail) ||
      (detail.includes('TEMP B-TREE') && (!PAGE_OF_PAGES.test(sql) || ofOneValue.includes(parent))),
  );
}

/**
 * @returns `costly`: the statements that read a whole table or index, or sort what they find, without what they select;
 * `unusedIndexes`: the indexes of the file that no statement uses
 */
export function explain(file: string, statements: readonly string[]): { costly: string[]; unusedIndexes: string[] } {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const costly: string[] = [];
    const used = new Set<string | undefined>();
    for (const sql of new Set(statements)) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as unknown as Step[];
      for (const { detail } of plan) used.add(/ INDEX (.*?\)(?: unique| null| present)?) \(/.exec(detail)?.[1]);
      if (isCostly(sql, plan)) costly.push(sql.slice(sql.search(/FROM "/)));
    }
    const indexes = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name");
    const names = indexes.all().map(({ name }) => name as string);
    return { costly, unusedIndexes: names.filter((name) => !used.has(name)) };
  } finally {
    db.close();
  }
}
