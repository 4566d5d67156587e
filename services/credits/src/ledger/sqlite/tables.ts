import { readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { LIMIT_VALUE, statementCache } from 'platform/store/sqlite/statements.ts';
import type { LedgerRow } from '../ledger.ts';
import { EMPTY_ACCOUNT, type Account, type ReservationState } from '../rules.ts';

export const SCHEMA = readFileSync(new URL('./tables.sql', import.meta.url), 'utf8');

export interface Reservation {
  id: string;
  state: ReservationState;
  /** null for a tombstone: it was released before it was reserved. */
  amountMicros: number | null;
  chargedMicros: number;
  shortfallMicros: number;
  expiresAtMs: number;
}

const ROW = [
  'sequence',
  'kind',
  'id',
  'availableDeltaMicros',
  'reservedDeltaMicros',
  'spentDeltaMicros',
  'grantedDeltaMicros',
  'shortfallMicros',
  'availableMicros',
  'reservedMicros',
  'actor',
  'requestId',
  'note',
  'createdAt',
] as const satisfies readonly (keyof LedgerRow)[];
const ACCOUNT = [
  'availableMicros',
  'reservedMicros',
  'spentMicros',
  'grantedMicros',
  'openReservations',
  'sequence',
] as const satisfies readonly (keyof Account)[];
const RESERVATION = [
  'id',
  'state',
  'amountMicros',
  'chargedMicros',
  'shortfallMicros',
  'expiresAtMs',
] as const satisfies readonly (keyof Reservation)[];

/** SQL of an upsert: inserts the row, or updates all of its columns but the key. */
function put(table: string, key: readonly string[], columns: readonly string[]): string {
  const updates = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO ${table} (${columns}) VALUES (${placeholders(columns)})
    ON CONFLICT (${key}) DO UPDATE SET ${updates}`;
}
const placeholders = (columns: readonly string[]): string[] => columns.map((column) => `:${column}`);

const PUT_ACCOUNT = put('ledgerAccounts', ['organizationId'], ['organizationId', ...ACCOUNT]);
const PUT_RESERVATION = put('ledgerReservations', ['organizationId', 'id'], ['organizationId', ...RESERVATION]);
const ADD_ROW = `INSERT INTO ledgerRows (organizationId, ${ROW}) VALUES (:organizationId, ${placeholders(ROW)})`;

/** Reads and writes of the ledger's tables, by prepared statements. The caller opens the transaction. */
export function openTables(db: DatabaseSync) {
  const sql = statementCache(db, 'objects');
  const rowsOf = (where: string, ...values: (string | number)[]): LedgerRow[] =>
    sql(`SELECT ${ROW} FROM ledgerRows WHERE ${where}`)
      .all(...values)
      .map((row) => ({ ...row, actor: JSON.parse(row.actor as string) }) as LedgerRow);
  const organizationsOf = (from: string, ...values: (string | number)[]): string[] =>
    sql(`SELECT DISTINCT organizationId FROM ${from} ORDER BY organizationId LIMIT ${LIMIT_VALUE}`)
      .all(...values)
      .map((row) => row.organizationId as string);

  return {
    /** The id of the file; `newId` becomes it when the file has none yet. */
    fileId(newId: string): string {
      sql('INSERT INTO ledgerFile (one, id) VALUES (1, ?) ON CONFLICT DO NOTHING').run(newId);
      return sql('SELECT id FROM ledgerFile').get()!.id as string;
    },
    account(organizationId: string): Account {
      return {
        ...EMPTY_ACCOUNT,
        ...sql(`SELECT ${ACCOUNT} FROM ledgerAccounts WHERE organizationId = ?`).get(organizationId),
      };
    },
    putAccount(organizationId: string, account: Account): void {
      sql(PUT_ACCOUNT).run({ organizationId, ...account });
    },
    addRow(organizationId: string, row: LedgerRow): void {
      sql(ADD_ROW).run({ organizationId, ...row, actor: JSON.stringify(row.actor) });
    },
    rowsBefore: (organizationId: string, before: number, limit: number): LedgerRow[] =>
      rowsOf(
        `organizationId = ? AND sequence < ? ORDER BY sequence DESC LIMIT ${LIMIT_VALUE}`,
        organizationId,
        before,
        limit,
      ),
    grantOf: (organizationId: string, id: string): LedgerRow | undefined =>
      rowsOf("organizationId = ? AND id = ? AND kind = 'GRANT'", organizationId, id)[0],

    reservation(organizationId: string, id: string): Reservation | undefined {
      return sql(`SELECT ${RESERVATION} FROM ledgerReservations WHERE organizationId = ? AND id = ?`).get(
        organizationId,
        id,
      ) as Reservation | undefined;
    },
    putReservation(organizationId: string, reservation: Reservation): void {
      sql(PUT_RESERVATION).run({ organizationId, ...reservation });
    },
    due(organizationId: string, nowMs: number, limit: number): Reservation[] {
      return sql(
        `SELECT ${RESERVATION} FROM ledgerReservations
          WHERE organizationId = ? AND state = 'OPEN' AND expiresAtMs <= ? ORDER BY expiresAtMs LIMIT ${LIMIT_VALUE}`,
      ).all(organizationId, nowMs, limit) as unknown as Reservation[];
    },
    organizationsDue: (after: string, nowMs: number, limit: number): string[] =>
      organizationsOf(
        "ledgerReservations WHERE organizationId > ? AND state = 'OPEN' AND expiresAtMs <= ?",
        after,
        nowMs,
        limit,
      ),
    /** Deletes ended reservations of any organization whose id was made before `madeMs`. Returns their number. */
    deleteEnded(madeMs: number, limit: number): number {
      const ended = `SELECT organizationId, id FROM ledgerReservations
          WHERE state <> 'OPEN' AND id < ? ORDER BY id LIMIT ${LIMIT_VALUE}`;
      return Number(
        sql(`DELETE FROM ledgerReservations WHERE (organizationId, id) IN (${ended})`).run(firstIdOf(madeMs), limit)
          .changes,
      );
    },

    unrelayed: (organizationId: string, limit: number): LedgerRow[] =>
      rowsOf(
        `organizationId = ? AND sequence >
          (SELECT relayedSequence FROM ledgerAccounts WHERE organizationId = ledgerRows.organizationId)
          ORDER BY sequence LIMIT ${LIMIT_VALUE}`,
        organizationId,
        limit,
      ),
    organizationsUnrelayed: (after: string, limit: number): string[] =>
      organizationsOf('ledgerAccounts WHERE organizationId > ? AND relayedSequence < sequence', after, limit),
    acknowledge(organizationId: string, throughSequence: number): void {
      sql('UPDATE ledgerAccounts SET relayedSequence = ? WHERE organizationId = ? AND relayedSequence < ?').run(
        throughSequence,
        organizationId,
        throughSequence,
      );
    },
  };
}

/** A lower bound in text order of the UUIDv7s of this millisecond, above all earlier ones. */
function firstIdOf(madeMs: number): string {
  const digits = Math.max(0, madeMs).toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
