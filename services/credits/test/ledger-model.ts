import { DAY_MS } from 'platform/core/clock.ts';
import { timeOfId } from 'platform/core/ids.ts';
import type { GrantArguments, ReserveArguments } from '../src/ledger/ledger.ts';
import { RETENTION_MS } from './ledger-harness.ts';

type State = 'OPEN' | 'SETTLED' | 'RELEASED' | 'EXPIRED';
interface Reservation {
  state: State;
  amountMicros?: number;
  expiresAtMs: number;
  chargedMicros: number;
  shortfallMicros: number;
}

/**
 * The ledger of the README in plain variables: what an engine must answer to each command. The model does not number
 * rows.
 */
export function ledgerModel() {
  const grants = new Map<string, number>();
  const reservations = new Map<string, Reservation>();
  let spentMicros = 0;

  const total = (numbers: Iterable<number>): number => [...numbers].reduce((sum, number) => sum + number, 0);
  const open = (): Reservation[] => [...reservations.values()].filter((one) => one.state === 'OPEN');
  const account = () => {
    const grantedMicros = total(grants.values());
    const reservedMicros = total(open().map((one) => one.amountMicros!));
    return {
      availableMicros: grantedMicros - reservedMicros - spentMicros,
      reservedMicros,
      spentMicros,
      grantedMicros,
      openReservations: open().length,
      sequence: expect.any(Number),
    };
  };
  const expireIfDue = (one: Reservation | undefined, nowMs: number): void => {
    if (one?.state === 'OPEN' && one.expiresAtMs <= nowMs) one.state = 'EXPIRED';
  };
  const inWindow = (id: string, nowMs: number): boolean =>
    timeOfId(id) >= nowMs - RETENTION_MS && timeOfId(id) <= nowMs + DAY_MS;
  const outside = { outcome: 'ID_OUT_OF_WINDOW' };
  /** The reservation's present state, or the outcome that rejects its id. */
  const currentReservation = (id: string, nowMs: number): Reservation | undefined | typeof outside => {
    const known = reservations.get(id);
    expireIfDue(known, nowMs);
    return known?.state === 'OPEN' || inWindow(id, nowMs) ? known : outside;
  };

  return {
    account,
    grant({ id, amountMicros }: GrantArguments, nowMs: number) {
      if (!inWindow(id, nowMs)) return outside;
      const known = grants.get(id);
      if (known !== undefined && known !== amountMicros) return { outcome: 'CONFLICT' };
      grants.set(id, amountMicros);
      return { outcome: 'GRANTED', account: account() };
    },
    reserve({ id, amountMicros, ttlMs, maxOpen }: ReserveArguments, nowMs: number) {
      for (const one of reservations.values()) expireIfDue(one, nowMs);
      const known = currentReservation(id, nowMs);
      const { availableMicros, openReservations } = account();
      if (known && 'outcome' in known) return known;
      if (known?.amountMicros !== undefined && known.amountMicros !== amountMicros) return { outcome: 'CONFLICT' };
      if (known) return { outcome: known.state === 'OPEN' ? 'RESERVED' : 'ENDED', state: known.state, availableMicros };
      if (maxOpen > 0 && openReservations >= maxOpen) return { outcome: 'TOO_MANY_OPEN', availableMicros };
      if (availableMicros < amountMicros) return { outcome: 'INSUFFICIENT', availableMicros };
      reservations.set(id, {
        state: 'OPEN',
        amountMicros,
        expiresAtMs: nowMs + ttlMs,
        chargedMicros: 0,
        shortfallMicros: 0,
      });
      return { outcome: 'RESERVED', state: 'OPEN', availableMicros: availableMicros - amountMicros };
    },
    extend(id: string, ttlMs: number, nowMs: number) {
      const known = currentReservation(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) return { outcome: 'UNKNOWN' };
      known.expiresAtMs = Math.max(known.expiresAtMs, nowMs + ttlMs);
      return { outcome: 'FOUND', state: known.state };
    },
    settle(id: string, chargeMicros: number, nowMs: number) {
      const known = currentReservation(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) return { outcome: 'UNKNOWN' };
      if (known.state === 'OPEN' || known.state === 'EXPIRED') {
        known.state = 'SETTLED';
        known.chargedMicros = Math.min(chargeMicros, account().availableMicros);
        known.shortfallMicros = chargeMicros - known.chargedMicros;
        spentMicros += known.chargedMicros;
      }
      const { state, chargedMicros, shortfallMicros } = known;
      return { outcome: 'FOUND', state, chargedMicros, shortfallMicros };
    },
    release(id: string, nowMs: number) {
      const known = currentReservation(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) reservations.set(id, { state: 'RELEASED', expiresAtMs: 0, chargedMicros: 0, shortfallMicros: 0 });
      if (known?.state === 'OPEN') known.state = 'RELEASED';
      return { outcome: 'FOUND', state: reservations.get(id)!.state };
    },
    expire(nowMs: number) {
      const before = open().length;
      for (const one of reservations.values()) expireIfDue(one, nowMs);
      return before - open().length;
    },
  };
}
