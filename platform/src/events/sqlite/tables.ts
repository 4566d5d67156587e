import type { DatabaseSync } from 'node:sqlite';
import { packEvents, type Block } from './blocks.ts';

/**
 * A block is the events of one topic at the positions `last - count + 1` to `last`. Positions rise with each commit and
 * are never used again. `at`: when the block was published, in milliseconds since 1970.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS block (
    last INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL,
    events BLOB NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS block_of_topic ON block (topic);
  CREATE TABLE IF NOT EXISTS progress (
    topic TEXT NOT NULL, "group" TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0,
    until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (topic, "group")) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS dead_letter (
    topic TEXT NOT NULL, "group" TEXT NOT NULL, event TEXT NOT NULL, error TEXT NOT NULL, at TEXT NOT NULL) STRICT`;

const UPGRADE_BATCH = 500;

/** True for a file of a release that stored one row for each event. */
export const isOldFile = (db: DatabaseSync): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'event'").get() !== undefined;

/** Makes missing tables, and turns the events of a release that stored one row for each into blocks. */
export function prepareTables(db: DatabaseSync): void {
  db.exec(TABLES);
  if (!isOldFile(db)) return;
  // The new positions are above all old ones, so a group that has handled nothing of what is kept keeps its position.
  db.exec(`INSERT INTO sqlite_sequence (name, seq) SELECT 'block', max(seq) FROM
    (SELECT seq FROM sqlite_sequence UNION ALL SELECT seq FROM progress UNION ALL SELECT 0)`);
  for (const { topic } of db.prepare('SELECT DISTINCT topic FROM event').all()) upgradeTopic(db, String(topic));
  db.exec('DROP TABLE event');
}

function upgradeTopic(db: DatabaseSync, topic: string): void {
  const write = blockWriter(db);
  const next = db.prepare('SELECT seq, at, event FROM event WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?');
  const groups = db.prepare('SELECT "group", seq FROM progress WHERE topic = ?').all(topic);
  const move = db.prepare('UPDATE progress SET seq = ? WHERE topic = ? AND "group" = ?');
  for (let after = 0, rows; (rows = next.all(topic, after, UPGRADE_BATCH)).length > 0;) {
    const seqs = rows.map(({ seq }) => Number(seq));
    after = seqs.at(-1)!;
    // All of them are kept as long as the newest.
    const blocks = packEvents(rows.map(({ event }) => String(event).replaceAll('\n', ' ')));
    const before = write(topic, blocks, Number(rows.at(-1)!.at));
    for (const { group, seq } of groups) {
      const handled = seqs.filter((one) => one <= Number(seq)).length;
      if (handled > 0) move.run(before + handled, topic, String(group));
    }
  }
}

/** Makes a function that writes blocks in the caller's transaction, and returns the position before the first event. */
export function blockWriter(db: DatabaseSync) {
  const newest = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'block'");
  const insert = db.prepare('INSERT INTO block (last, topic, count, at, events) VALUES (?, ?, ?, ?, ?)');
  return (topic: string, blocks: readonly Block[], at: number): number => {
    const before = Number(newest.get()?.seq ?? 0);
    let last = before;
    for (const { count, events } of blocks) insert.run((last += count), topic, count, at, events);
    return before;
  };
}
