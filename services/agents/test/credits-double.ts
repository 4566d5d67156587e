import { ServiceError } from 'platform/core/errors.ts';
import type { ReservationState } from 'proto/credits/v1/credits.ts';
import type { Deps } from '../src/deps.ts';

interface Reservation {
  state: ReservationState;
  amountMicros: number;
  until: number;
  /** Zero or one, if credits keeps its promises. */
  chargedMicros: number[];
}

/**
 * A test double of credits for one organization, in memory, with the guarantees of the real service: ids are
 * idempotent, only an open reservation changes, and releasing an unknown id leaves a tombstone. `now` is in
 * milliseconds.
 */
export function creditsDouble(grantedMicros: number, now: () => number = Date.now) {
  const reservations = new Map<string, Reservation>();
  const account = { available: grantedMicros, reserved: 0, spent: 0, open: 0 };
  let down = false;

  const expireOverdue = (reservation: Reservation): void => {
    if (reservation.state === 'OPEN' && reservation.until < now()) close(reservation, 'EXPIRED', 0);
  };
  function close(reservation: Reservation, state: ReservationState, charge: number): void {
    account.reserved -= reservation.amountMicros;
    account.available += reservation.amountMicros - charge;
    account.spent += charge;
    account.open -= 1;
    reservation.state = state;
    if (state === 'SETTLED') reservation.chargedMicros.push(charge);
  }
  const findReservation = (id: string): Reservation => {
    if (down) throw new ServiceError('UNAVAILABLE');
    const reservation = reservations.get(id) ?? {
      state: 'RESERVATION_STATE_UNSPECIFIED',
      amountMicros: 0,
      until: Infinity,
      chargedMicros: [],
    };
    expireOverdue(reservation);
    return reservation;
  };

  const client: Deps['credits'] = {
    async reserve({ id, amountMicros, ttlMs, maxOpen }) {
      const known = findReservation(id);
      const answer = (outcome: 'RESERVED' | 'INSUFFICIENT' | 'TOO_MANY_OPEN' | 'ENDED', state = known.state) => ({
        outcome,
        state,
        availableMicros: account.available,
      });
      if (known.state === 'OPEN') return answer('RESERVED');
      if (known.state !== 'RESERVATION_STATE_UNSPECIFIED') return answer('ENDED');
      if (maxOpen > 0 && account.open >= maxOpen) return answer('TOO_MANY_OPEN');
      if (account.available < amountMicros) return answer('INSUFFICIENT');
      reservations.set(id, { state: 'OPEN', amountMicros, until: now() + ttlMs, chargedMicros: [] });
      account.available -= amountMicros;
      account.reserved += amountMicros;
      account.open += 1;
      return answer('RESERVED', 'OPEN');
    },
    async extend({ id, ttlMs }) {
      const reservation = findReservation(id);
      if (reservation.state === 'OPEN') reservation.until = now() + ttlMs;
      return { state: reservation.state };
    },
    async settle({ id, chargeMicros }) {
      const reservation = findReservation(id);
      if (reservation.state === 'OPEN') close(reservation, 'SETTLED', chargeMicros);
      else if (reservation.state === 'EXPIRED') {
        const charge = Math.min(chargeMicros, account.available);
        account.available -= charge;
        account.spent += charge;
        reservation.state = 'SETTLED';
        reservation.chargedMicros.push(charge);
      }
      return { state: reservation.state, chargedMicros: chargeMicros, shortfallMicros: 0 };
    },
    async release({ id }) {
      const reservation = findReservation(id);
      if (reservation.state === 'OPEN') close(reservation, 'RELEASED', 0);
      else if (reservation.state === 'RESERVATION_STATE_UNSPECIFIED')
        reservations.set(id, { ...reservation, state: 'RELEASED' });
      return { state: reservation.state };
    },
  };
  return {
    client,
    account,
    stateOf: (id: string) => reservations.get(id)?.state,
    chargesOf: (id: string): readonly number[] => reservations.get(id)?.chargedMicros ?? [],
    /** Expires overdue reservations, as the sweeper of credits does. */
    sweep: () => reservations.forEach(expireOverdue),
    /** While it is down, every call fails with UNAVAILABLE. */
    setDown: (value: boolean) => {
      down = value;
    },
  };
}
export type CreditsDouble = ReturnType<typeof creditsDouble>;
