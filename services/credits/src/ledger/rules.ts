import { invalid, ServiceError } from 'platform/core/errors.ts';

/** available + reserved + spent = granted, at any moment. */
export interface Account {
  availableMicros: number;
  reservedMicros: number;
  spentMicros: number;
  grantedMicros: number;
  openReservations: number;
  /** Number of the newest row. */
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

/** What one row does to an account. */
export interface Change {
  kind: LedgerRowKind;
  /** Grant or reservation. */
  id: string;
  availableDeltaMicros: number;
  reservedDeltaMicros: number;
  spentDeltaMicros: number;
  grantedDeltaMicros: number;
  /** Charge asked for = spent delta + shortfall. */
  shortfallMicros: number;
  openDelta: number;
  note: string;
}

const change = (kind: LedgerRowKind, id: string, parts: Partial<Change>): Change => ({
  kind,
  id,
  availableDeltaMicros: 0,
  reservedDeltaMicros: 0,
  spentDeltaMicros: 0,
  grantedDeltaMicros: 0,
  shortfallMicros: 0,
  openDelta: 0,
  note: '',
  ...parts,
});

export const granted = (id: string, amountMicros: number, note: string): Change =>
  change('GRANT', id, { availableDeltaMicros: amountMicros, grantedDeltaMicros: amountMicros, note });

// `0 - amount`, not `-amount`: minus zero is not an integer to every engine.
export const reserved = (id: string, amountMicros: number): Change =>
  change('RESERVE', id, { availableDeltaMicros: 0 - amountMicros, reservedDeltaMicros: amountMicros, openDelta: 1 });

/** The whole amount goes back. */
export const givenBack = (kind: 'RELEASE' | 'EXPIRE', id: string, amountMicros: number): Change =>
  change(kind, id, { availableDeltaMicros: amountMicros, reservedDeltaMicros: 0 - amountMicros, openDelta: -1 });

/** A charge above the reservation takes the rest from what is available, as far as there is. */
export function settled(id: string, amountMicros: number, wantMicros: number, account: Account): Change {
  const chargedMicros = Math.min(wantMicros, amountMicros + account.availableMicros);
  return change('SETTLE', id, {
    availableDeltaMicros: amountMicros - chargedMicros,
    reservedDeltaMicros: 0 - amountMicros,
    spentDeltaMicros: chargedMicros,
    shortfallMicros: wantMicros - chargedMicros,
    openDelta: -1,
  });
}

/** Nothing is set aside any more: the charge takes what is available, as far as there is. */
export function settledLate(id: string, wantMicros: number, account: Account): Change {
  const chargedMicros = Math.min(wantMicros, account.availableMicros);
  return change('LATE_SETTLE', id, {
    availableDeltaMicros: 0 - chargedMicros,
    spentDeltaMicros: chargedMicros,
    shortfallMicros: wantMicros - chargedMicros,
  });
}

export const changed = (account: Account, by: Change): Account => ({
  availableMicros: account.availableMicros + by.availableDeltaMicros,
  reservedMicros: account.reservedMicros + by.reservedDeltaMicros,
  spentMicros: account.spentMicros + by.spentDeltaMicros,
  grantedMicros: account.grantedMicros + by.grantedDeltaMicros,
  openReservations: account.openReservations + by.openDelta,
  sequence: account.sequence + 1,
});

/**
 * CONFLICT: the id is known with another amount. ACCOUNT_FULL: all grants together would pass MAX_GRANTED_MICROS.
 * UNKNOWN: no reservation has the id. ID_OUT_OF_WINDOW: the id's time is past the retention window (or ahead of the
 * clock) and no open reservation has it, so that it cannot be told whether it was used before.
 */
export type Refusal = 'CONFLICT' | 'ACCOUNT_FULL' | 'UNKNOWN' | 'ID_OUT_OF_WINDOW';

const REFUSALS: Record<Refusal, () => ServiceError> = {
  CONFLICT: () => new ServiceError('CONFLICT', 'This id was used with another amount'),
  ACCOUNT_FULL: () => invalid('/amountMicros', 'The grants of this organization would pass what an account can hold'),
  UNKNOWN: () => new ServiceError('NOT_FOUND', 'No reservation has this id'),
  ID_OUT_OF_WINDOW: () => invalid('/id', 'The time of this id is outside the retention window'),
};
/** The error by which a service tells of a refusal. */
export const refusalError = (refusal: Refusal): ServiceError => REFUSALS[refusal]();
