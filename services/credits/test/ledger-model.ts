import { DAY_MS } from 'platform/core/clock.ts';
import { timeOfId } from 'platform/core/ids.ts';
import type { GrantArguments, ReserveArguments } from '../src/ledger/ledger.ts';
import { RETENTION_MS } from './ledger-harness.ts';

type State = 'OPEN' | 'SETTLED' | 'RELEASED' | 'EXPIRED';
interface Known {
  state: State;
  amountMicros?: number;
  endsAtMs: number;
  chargedMicros: number;
  shortfallMicros: number;
}

/** The ledger as its README tells it, in plain variables: what a real one must answer, command by command. It does not number rows. */
export function ledgerModel() {
  const grants = new Map<string, number>();
  const reservations = new Map<string, Known>();
  let spentMicros = 0;

  const total = (numbers: Iterable<number>): number => [...numbers].reduce((sum, number) => sum + number, 0);
  const open = (): Known[] => [...reservations.values()].filter((one) => one.state === 'OPEN');
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
  const lapse = (one: Known | undefined, nowMs: number): void => {
    if (one?.state === 'OPEN' && one.endsAtMs <= nowMs) one.state = 'EXPIRED';
  };
  const inWindow = (id: string, nowMs: number): boolean =>
    timeOfId(id) >= nowMs - RETENTION_MS && timeOfId(id) <= nowMs + DAY_MS;
  const outside = { outcome: 'ID_OUT_OF_WINDOW' };
  /** The reservation as of now, or the refusal of its id. */
  const present = (id: string, nowMs: number): Known | undefined | typeof outside => {
    const known = reservations.get(id);
    lapse(known, nowMs);
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
      for (const one of reservations.values()) lapse(one, nowMs);
      const known = present(id, nowMs);
      const { availableMicros, openReservations } = account();
      if (known && 'outcome' in known) return known;
      if (known?.amountMicros !== undefined && known.amountMicros !== amountMicros) return { outcome: 'CONFLICT' };
      if (known) return { outcome: known.state === 'OPEN' ? 'RESERVED' : 'ENDED', state: known.state, availableMicros };
      if (maxOpen > 0 && openReservations >= maxOpen) return { outcome: 'TOO_MANY_OPEN', availableMicros };
      if (availableMicros < amountMicros) return { outcome: 'INSUFFICIENT', availableMicros };
      reservations.set(id, {
        state: 'OPEN',
        amountMicros,
        endsAtMs: nowMs + ttlMs,
        chargedMicros: 0,
        shortfallMicros: 0,
      });
      return { outcome: 'RESERVED', state: 'OPEN', availableMicros: availableMicros - amountMicros };
    },
    extend(id: string, ttlMs: number, nowMs: number) {
      const known = present(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) return { outcome: 'UNKNOWN' };
      known.endsAtMs = Math.max(known.endsAtMs, nowMs + ttlMs);
      return { outcome: 'FOUND', state: known.state };
    },
    settle(id: string, wantMicros: number, nowMs: number) {
      const known = present(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) return { outcome: 'UNKNOWN' };
      if (known.state === 'OPEN' || known.state === 'EXPIRED') {
        known.state = 'SETTLED';
        known.chargedMicros = Math.min(wantMicros, account().availableMicros);
        known.shortfallMicros = wantMicros - known.chargedMicros;
        spentMicros += known.chargedMicros;
      }
      const { state, chargedMicros, shortfallMicros } = known;
      return { outcome: 'FOUND', state, chargedMicros, shortfallMicros };
    },
    release(id: string, nowMs: number) {
      const known = present(id, nowMs);
      if (known && 'outcome' in known) return known;
      if (!known) reservations.set(id, { state: 'RELEASED', endsAtMs: 0, chargedMicros: 0, shortfallMicros: 0 });
      if (known?.state === 'OPEN') known.state = 'RELEASED';
      return { outcome: 'FOUND', state: reservations.get(id)!.state };
    },
    expire(nowMs: number) {
      const before = open().length;
      for (const one of reservations.values()) lapse(one, nowMs);
      return before - open().length;
    },
  };
}
