import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TOPICS } from 'platform/events/bus.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { AUDIT_ENTRIES } from '../../services/auth/src/audit/store.ts';
import type { RecordCounts, Records } from './records.ts';

const AUDIT_GROUP = 'auth-audit';
const WITH_OUTBOX = ['auth', 'agents', 'memory'] as const;
/** The time of a CloudEvent, within its JSON or within JSON that holds it as a string. */
const EVENT_TIME = /"time\\*":\\*"([^"\\]+)/;

/** Counts records in the SQLite files of a data folder. Each read ends at once, so that no log grows because of it. */
export function openFileRecords(folder: string): Records {
  const open = (name: string): DatabaseSync =>
    new DatabaseSync(join(folder, `${name}.db`), { readOnly: true, timeout: 5_000 });
  const databases = { auth: open('auth'), agents: open('agents'), memory: open('memory'), credits: open('credits') };
  const events = open('events');
  const numberOf = (db: DatabaseSync, sql: string): number => Number(db.prepare(sql).get()?.n ?? 0);
  const outboxes = WITH_OUTBOX.map((name) => databases[name]);

  const { table, sumOfEvents, position } = eventTableOf(events);

  return {
    async backlog() {
      return {
        outbox: outboxes.reduce((sum, db) => sum + numberOf(db, `SELECT count(*) AS n FROM "${OUTBOX.name}"`), 0),
        ledgers: numberOf(
          databases.credits,
          'SELECT count(*) AS n FROM ledgerAccounts WHERE relayedSequence < sequence',
        ),
        audit: numberOf(
          events,
          `SELECT ${sumOfEvents} AS n FROM ${table} WHERE topic = 'audit.v1'
            AND ${position} > (SELECT seq FROM progress WHERE topic = 'audit.v1' AND "group" = '${AUDIT_GROUP}')`,
        ),
      };
    },
    async counts() {
      const byTopic = events.prepare(`SELECT topic, ${sumOfEvents} AS n FROM ${table} GROUP BY topic`).all();
      const count = (topic: string): number => Number(byTopic.find((row) => row.topic === topic)?.n ?? 0);
      return {
        ...Object.fromEntries(TOPICS.map((topic) => [topic, count(topic)])),
        'audit entries': numberOf(databases.auth, `SELECT count(*) AS n FROM "${AUDIT_ENTRIES.name}"`),
      } as RecordCounts;
    },
    oldestMs() {
      const oldest = outboxes.flatMap((db) => db.prepare(`SELECT * FROM "${OUTBOX.name}" LIMIT 1`).all());
      const times = oldest.map((row) => Date.parse(EVENT_TIME.exec(Object.values(row).join(' '))?.[1] ?? ''));
      return times.some(Number.isNaN) ? undefined : Math.max(0, ...times.map((time) => Date.now() - time));
    },
    async close() {
      for (const db of [...Object.values(databases), events]) db.close();
    },
  };
}

/** The event file has events one by one, or in blocks. */
function eventTableOf(db: DatabaseSync): { table: string; sumOfEvents: string; position: string } {
  const isInBlocks = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'block'").get();
  return isInBlocks
    ? { table: 'block', sumOfEvents: 'coalesce(sum(count), 0)', position: 'last' }
    : { table: 'event', sumOfEvents: 'count(*)', position: 'seq' };
}

/** Bytes that the documents of a data folder take, in pages that hold something. */
export function storedBytes(folder: string): Record<string, number> {
  const bytesOf = (name: string): number => {
    const db = new DatabaseSync(join(folder, `${name}.db`), { readOnly: true, timeout: 5_000 });
    const number = (pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    const bytes = (number('page_count') - number('freelist_count')) * number('page_size');
    db.close();
    return bytes;
  };
  return Object.fromEntries(['memory', 'events', 'auth', 'agents', 'credits'].map((name) => [name, bytesOf(name)]));
}
