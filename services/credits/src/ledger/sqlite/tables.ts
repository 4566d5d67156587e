import { readFileSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { parseJson } from 'platform/core/parse-json.ts';
import { firstIdOf } from 'platform/core/ids.ts';
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
const placeholders = (columns: readonly string[]): string[] => columns.map(() => '?');

const PUT_ACCOUNT = put('ledgerAccounts', ['organizationId'], ['organizationId', ...ACCOUNT]);
const PUT_RESERVATION = put('ledgerReservations', ['organizationId', 'id'], ['organizationId', ...RESERVATION]);
const ADD_ROW = `INSERT INTO ledgerRows (organizationId, ${ROW}) VALUES (?, ${placeholders(ROW)})`;
const GET_ACCOUNT = `SELECT ${ACCOUNT} FROM ledgerAccounts WHERE organizationId = ?`;
const GET_RESERVATION = `SELECT ${RESERVATION} FROM ledgerReservations WHERE organizationId = ? AND id = ?`;
const DUE_RESERVATIONS = `SELECT ${RESERVATION} FROM ledgerReservations
  WHERE organizationId = ? AND state = 'OPEN' AND expiresAtMs <= ? ORDER BY expiresAtMs LIMIT ${LIMIT_VALUE}`;

/** Values by their places. By name, binding them costs several times as much. */
const valuesOf = <C extends string>(
  columns: readonly C[],
  of: Readonly<Record<C, SQLInputValue>>,
): readonly SQLInputValue[] => columns.map((column) => of[column]);

/** @param row an array of the values of these columns */
function objectOf<T>(columns: readonly (keyof T)[], row: unknown): T {
  const object: Partial<T> = {};
  columns.forEach((column, place) => {
    object[column] = (row as T[keyof T][])[place];
  });
  return object as T;
}

/** Objects are stored as JSON. */
type Stored<T> = { [K in keyof T]: T[K] extends object ? string : T[K] };

/** Reads and writes of the ledger's tables, by prepared statements. The caller opens the transaction. */
export function openTables(db: DatabaseSync) {
  const sql = statementCache(db, 'arrays');
  const rowsOf = (where: string, ...values: (string | number)[]): LedgerRow[] =>
    sql(`SELECT ${ROW} FROM ledgerRows WHERE ${where}`)
      .all(...values)
      .map((row) => {
        const { actor, ...fields } = objectOf<Stored<LedgerRow>>(ROW, row);
        return { ...fields, actor: parseJson(actor) as LedgerRow['actor'] };
      });
  const organizationsOf = (from: string, ...values: (string | number)[]): string[] =>
    sql(`SELECT DISTINCT organizationId FROM ${from} ORDER BY organizationId LIMIT ${LIMIT_VALUE}`)
      .all(...values)
      .map((row) => firstOf(row));

  return {
    /** The id of the file; `newId` becomes it when the file has none yet. */
    fileId(newId: string): string {
      sql('INSERT INTO ledgerFile (one, id) VALUES (1, ?) ON CONFLICT DO NOTHING').run(newId);
      return firstOf(sql('SELECT id FROM ledgerFile').get());
    },
    account(organizationId: string): Account {
      const row = sql(GET_ACCOUNT).get(organizationId);
      return row ? objectOf<Account>(ACCOUNT, row) : EMPTY_ACCOUNT;
    },
    putAccount(organizationId: string, account: Account): void {
      sql(PUT_ACCOUNT).run(organizationId, ...valuesOf(ACCOUNT, account));
    },
    addRow(organizationId: string, row: LedgerRow): void {
      sql(ADD_ROW).run(organizationId, ...valuesOf(ROW, { ...row, actor: JSON.stringify(row.actor) }));
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
      const row = sql(GET_RESERVATION).get(organizationId, id);
      return row && objectOf<Reservation>(RESERVATION, row);
    },
    putReservation(organizationId: string, reservation: Reservation): void {
      sql(PUT_RESERVATION).run(organizationId, ...valuesOf(RESERVATION, reservation));
    },
    due(organizationId: string, nowMs: number, limit: number): Reservation[] {
      const rows = sql(DUE_RESERVATIONS).all(organizationId, nowMs, limit);
      return rows.map((row) => objectOf<Reservation>(RESERVATION, row));
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

/** The value of a row with one text. */
const firstOf = (row: unknown): string => (row as [string])[0];
