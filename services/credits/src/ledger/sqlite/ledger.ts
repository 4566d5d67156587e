import { strict as assert } from 'node:assert';
import { isoTime, type Clock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { groupCommit } from 'platform/store/sqlite/group-commit.ts';
import { openWriter } from 'platform/store/sqlite/database.ts';
import {
  checkExtend,
  checkGrant,
  checkPage,
  checkRelease,
  checkReserve,
  checkSettle,
  isInWindow,
  MAX_GRANTED_MICROS,
} from '../arguments.ts';
import { EXPIRIES_PER_RESERVE, SERVICE_AUTHOR, type Author, type Ledger, type OpenLedger } from '../ledger.ts';
import {
  applyChange,
  giveBackChange,
  grantChange,
  lateSettleChange,
  reserveChange,
  settleChange,
  type Account,
  type Change,
} from '../rules.ts';
import { SCHEMA, openTables, type Reservation } from './tables.ts';

/**
 * The embedded engine: the ledger's tables in a SQLite file, which may also be the service's store file. The
 * transactions of both begin and end within one turn of this process's event loop, so neither waits for the other.
 * @param retentionMs how long the id of a grant or ended reservation is remembered
 * @returns the ledger, and the id that its file was given when it was created
 */
export async function openSqliteLedger(
  file: string,
  { clock, retentionMs }: { clock: Clock; retentionMs: number },
): Promise<OpenLedger & { fileId: string }> {
  const db = openWriter(file);
  db.exec(SCHEMA);
  const commits = groupCommit(db);
  const tables = openTables(db);
  const fileId = tables.fileId(newId());

  /** @param before the account, which the caller may have read */
  function post(
    organizationId: string,
    change: Change,
    { actor, requestId }: Author,
    before = tables.account(organizationId),
  ): Account {
    const account = applyChange(before, change);
    const { openDelta, ...fields } = change;
    const { sequence, availableMicros, reservedMicros } = account;
    tables.putAccount(organizationId, account);
    tables.addRow(organizationId, {
      ...fields,
      sequence,
      availableMicros,
      reservedMicros,
      actor,
      requestId,
      createdAt: isoTime(clock.now()),
    });
    return account;
  }

  /** Ends an open reservation and makes its whole amount available again. */
  function giveBack(
    organizationId: string,
    kind: 'RELEASE' | 'EXPIRE',
    reservation: Reservation,
    author: Author,
  ): Reservation {
    const ended: Reservation = { ...reservation, state: kind === 'RELEASE' ? 'RELEASED' : 'EXPIRED' };
    post(organizationId, giveBackChange(kind, reservation.id, amountOf(reservation)), author);
    tables.putReservation(organizationId, ended);
    return ended;
  }

  function expireDue(organizationId: string, limit: number): number {
    const due = tables.due(organizationId, clock.now(), limit);
    for (const reservation of due) giveBack(organizationId, 'EXPIRE', reservation, SERVICE_AUTHOR);
    return due.length;
  }

  /** The reservation's present state: expires it first when it is due. Ended ones are known only within the window. */
  function currentReservation(organizationId: string, id: string): Reservation | 'ID_OUT_OF_WINDOW' | undefined {
    const found = tables.reservation(organizationId, id);
    if (found?.state === 'OPEN' && found.expiresAtMs > clock.now()) return found;
    const ended = found?.state === 'OPEN' ? giveBack(organizationId, 'EXPIRE', found, SERVICE_AUTHOR) : found;
    return isInWindow(id, clock.now(), retentionMs) ? ended : 'ID_OUT_OF_WINDOW';
  }

  const ledger: Ledger = {
    async grant(organizationId, grant, author) {
      checkGrant(grant);
      const { id, amountMicros, note } = grant;
      return commits.write(() => {
        if (!isInWindow(id, clock.now(), retentionMs)) return { outcome: 'ID_OUT_OF_WINDOW' };
        const known = tables.grantOf(organizationId, id);
        const account = tables.account(organizationId);
        if (known)
          return known.grantedDeltaMicros === amountMicros ? { outcome: 'GRANTED', account } : { outcome: 'CONFLICT' };
        if (account.grantedMicros + amountMicros > MAX_GRANTED_MICROS) return { outcome: 'ACCOUNT_FULL' };
        const change = grantChange(id, amountMicros, note);
        return { outcome: 'GRANTED', account: post(organizationId, change, author, account) };
      });
    },

    async reserve(organizationId, request, author) {
      checkReserve(request);
      const { id, amountMicros, ttlMs, maxOpen } = request;
      return commits.write(() => {
        expireDue(organizationId, EXPIRIES_PER_RESERVE);
        const known = currentReservation(organizationId, id);
        if (known === 'ID_OUT_OF_WINDOW') return { outcome: known };
        const before = tables.account(organizationId);
        const { availableMicros, openReservations } = before;
        if (known) {
          if (known.amountMicros !== null && known.amountMicros !== amountMicros) return { outcome: 'CONFLICT' };
          return { outcome: known.state === 'OPEN' ? 'RESERVED' : 'ENDED', state: known.state, availableMicros };
        }
        if (maxOpen > 0 && openReservations >= maxOpen) return { outcome: 'TOO_MANY_OPEN', availableMicros };
        if (availableMicros < amountMicros) return { outcome: 'INSUFFICIENT', availableMicros };
        const account = post(organizationId, reserveChange(id, amountMicros), author, before);
        tables.putReservation(organizationId, {
          id,
          state: 'OPEN',
          amountMicros,
          chargedMicros: 0,
          shortfallMicros: 0,
          expiresAtMs: clock.now() + ttlMs,
        });
        return { outcome: 'RESERVED', state: 'OPEN', availableMicros: account.availableMicros };
      });
    },

    async extend(organizationId, id, ttlMs) {
      checkExtend(id, ttlMs);
      return commits.write(() => {
        const known = currentReservation(organizationId, id);
        if (known === 'ID_OUT_OF_WINDOW') return { outcome: known };
        if (!known) return { outcome: 'UNKNOWN' };
        if (known.state === 'OPEN')
          tables.putReservation(organizationId, {
            ...known,
            expiresAtMs: Math.max(known.expiresAtMs, clock.now() + ttlMs),
          });
        return { outcome: 'FOUND', state: known.state };
      });
    },

    async settle(organizationId, id, chargeMicros, author) {
      checkSettle(id, chargeMicros);
      return commits.write(() => {
        const known = currentReservation(organizationId, id);
        if (known === 'ID_OUT_OF_WINDOW') return { outcome: known };
        if (!known) return { outcome: 'UNKNOWN' };
        const { state, chargedMicros, shortfallMicros } = known;
        if (state === 'SETTLED' || state === 'RELEASED')
          return { outcome: 'FOUND', state, chargedMicros, shortfallMicros };
        const account = tables.account(organizationId);
        const change =
          state === 'OPEN'
            ? settleChange(id, amountOf(known), chargeMicros, account)
            : lateSettleChange(id, chargeMicros, account);
        const result = {
          state: 'SETTLED',
          chargedMicros: change.spentDeltaMicros,
          shortfallMicros: change.shortfallMicros,
        } as const;
        post(organizationId, change, author, account);
        tables.putReservation(organizationId, { ...known, ...result });
        return { outcome: 'FOUND', ...result };
      });
    },

    async release(organizationId, id, author) {
      checkRelease(id);
      return commits.write(() => {
        const known = currentReservation(organizationId, id);
        if (known === 'ID_OUT_OF_WINDOW') return { outcome: known };
        if (!known) {
          tables.putReservation(organizationId, {
            id,
            state: 'RELEASED',
            amountMicros: null,
            chargedMicros: 0,
            shortfallMicros: 0,
            expiresAtMs: 0,
          });
          return { outcome: 'FOUND', state: 'RELEASED' };
        }
        const { state } = known.state === 'OPEN' ? giveBack(organizationId, 'RELEASE', known, author) : known;
        return { outcome: 'FOUND', state };
      });
    },

    async expire(organizationId, limit) {
      return commits.write(() => expireDue(organizationId, limit));
    },
    async balance(organizationId) {
      return tables.account(organizationId);
    },
    async rows(organizationId, before, limit) {
      checkPage(before, limit);
      return tables.rowsBefore(organizationId, before || Number.MAX_SAFE_INTEGER, limit);
    },
    async unrelayed(organizationId, limit) {
      return tables.unrelayed(organizationId, limit);
    },
    async acknowledge(organizationId, throughSequence) {
      return commits.write(() => tables.acknowledge(organizationId, throughSequence));
    },
    async rebuild() {
      throw new ServiceError(
        'NOT_SUPPORTED',
        'The embedded ledger keeps account and rows in one transaction: there is nothing to rebuild',
      );
    },
  };

  return {
    fileId,
    ledger,
    platformLedger: {
      organizationsDue: async (after, limit) => tables.organizationsDue(after, clock.now(), limit),
      organizationsExpiring: async (beforeMs, after, limit) => tables.organizationsDue(after, beforeMs - 1, limit),
      organizationsUnrelayed: async (after, limit) => tables.organizationsUnrelayed(after, limit),
      deleteEnded: async (limit) => commits.write(() => tables.deleteEnded(clock.now() - retentionMs, limit)),
    },
    async close() {
      commits.flush();
      db.close();
    },
  };
}

/** @throws AssertionError for a tombstone, the only reservation without an amount */
function amountOf({ id, amountMicros }: Reservation): number {
  assert.ok(amountMicros !== null, `reservation ${id} was never open`);
  return amountMicros;
}
