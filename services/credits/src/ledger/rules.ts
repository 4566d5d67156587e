import { invalid, ServiceError } from 'platform/core/errors.ts';

/** The balances of one organization. At any moment: available + reserved + spent = granted. */
export interface Account {
  availableMicros: number;
  reservedMicros: number;
  spentMicros: number;
  grantedMicros: number;
  openReservations: number;
  /** Sequence of the newest ledger row. */
  sequence: number;
}

export const EMPTY_ACCOUNT: Account = {
  availableMicros: 0,
  reservedMicros: 0,
  spentMicros: 0,
  grantedMicros: 0,
  openReservations: 0,
  sequence: 0,
};

export type ReservationState = 'OPEN' | 'SETTLED' | 'RELEASED' | 'EXPIRED';
export type LedgerRowKind = 'GRANT' | 'RESERVE' | 'SETTLE' | 'RELEASE' | 'EXPIRE' | 'LATE_SETTLE';

/** How one ledger row changes an account. */
export interface Change {
  kind: LedgerRowKind;
  /** Id of the grant or reservation. */
  id: string;
  availableDeltaMicros: number;
  reservedDeltaMicros: number;
  spentDeltaMicros: number;
  grantedDeltaMicros: number;
  /** What could not be charged: requested charge = spentDeltaMicros + shortfallMicros. */
  shortfallMicros: number;
  openDelta: number;
  note: string;
}

const change = (kind: LedgerRowKind, id: string, fields: Partial<Change>): Change => ({
  kind,
  id,
  availableDeltaMicros: 0,
  reservedDeltaMicros: 0,
  spentDeltaMicros: 0,
  grantedDeltaMicros: 0,
  shortfallMicros: 0,
  openDelta: 0,
  note: '',
  ...fields,
});

export const grantChange = (id: string, amountMicros: number, note: string): Change =>
  change('GRANT', id, { availableDeltaMicros: amountMicros, grantedDeltaMicros: amountMicros, note });

// `0 - amount`, not `-amount`: not every engine accepts -0 as an integer.
export const reserveChange = (id: string, amountMicros: number): Change =>
  change('RESERVE', id, { availableDeltaMicros: 0 - amountMicros, reservedDeltaMicros: amountMicros, openDelta: 1 });

/** Makes the whole reserved amount available again. */
export const giveBackChange = (kind: 'RELEASE' | 'EXPIRE', id: string, amountMicros: number): Change =>
  change(kind, id, { availableDeltaMicros: amountMicros, reservedDeltaMicros: 0 - amountMicros, openDelta: -1 });

/**
 * Charges an open reservation of `amountMicros`. What the charge exceeds it by is taken from the available balance;
 * what that does not cover is the shortfall.
 */
export function settleChange(id: string, amountMicros: number, chargeMicros: number, account: Account): Change {
  const chargedMicros = Math.min(chargeMicros, amountMicros + account.availableMicros);
  return change('SETTLE', id, {
    availableDeltaMicros: amountMicros - chargedMicros,
    reservedDeltaMicros: 0 - amountMicros,
    spentDeltaMicros: chargedMicros,
    shortfallMicros: chargeMicros - chargedMicros,
    openDelta: -1,
  });
}

/** Charges an expired reservation: it holds no amount any more, so the available balance alone is charged. */
export function lateSettleChange(id: string, chargeMicros: number, account: Account): Change {
  const chargedMicros = Math.min(chargeMicros, account.availableMicros);
  return change('LATE_SETTLE', id, {
    availableDeltaMicros: 0 - chargedMicros,
    spentDeltaMicros: chargedMicros,
    shortfallMicros: chargeMicros - chargedMicros,
  });
}

/** The account after the change; its sequence is that of the change's row. */
export const applyChange = (account: Account, by: Change): Account => ({
  availableMicros: account.availableMicros + by.availableDeltaMicros,
  reservedMicros: account.reservedMicros + by.reservedDeltaMicros,
  spentMicros: account.spentMicros + by.spentDeltaMicros,
  grantedMicros: account.grantedMicros + by.grantedDeltaMicros,
  openReservations: account.openReservations + by.openDelta,
  sequence: account.sequence + 1,
});

/**
 * Why the ledger rejects a call.
 * - CONFLICT: the id was used with another amount.
 * - ACCOUNT_FULL: the sum of all grants would exceed MAX_GRANTED_MICROS.
 * - UNKNOWN: no reservation has this id.
 * - ID_OUT_OF_WINDOW: the id's time is older than the retention window or too far ahead of the clock, and no open
 *   reservation has the id. The ledger cannot tell whether such an id was used before.
 */
export type Rejection = 'CONFLICT' | 'ACCOUNT_FULL' | 'UNKNOWN' | 'ID_OUT_OF_WINDOW';

const REJECTION_ERRORS: Record<Rejection, () => ServiceError> = {
  CONFLICT: () => new ServiceError('CONFLICT', 'This id was used with another amount'),
  ACCOUNT_FULL: () => invalid('/amountMicros', 'The grants of this organization would pass what an account can hold'),
  UNKNOWN: () => new ServiceError('NOT_FOUND', 'No reservation has this id'),
  ID_OUT_OF_WINDOW: () => invalid('/id', 'The time of this id is outside the retention window'),
};
/** The ServiceError that a handler throws for a rejection: CONFLICT, NOT_FOUND or INVALID_REQUEST. */
export const rejectionError = (rejection: Rejection): ServiceError => REJECTION_ERRORS[rejection]();
