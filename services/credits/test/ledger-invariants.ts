import type { Ledger, LedgerRow } from '../src/ledger/ledger.ts';

const PAGE = 500;

/** All rows of an organization, oldest first. */
export async function allRows(ledger: Ledger, organizationId: string): Promise<LedgerRow[]> {
  const rows: LedgerRow[] = [];
  for (
    let before = 0, page: LedgerRow[];
    (page = await ledger.rows(organizationId, before, PAGE)).length > 0;
    before = rows.at(-1)!.sequence
  )
    rows.push(...page);
  return rows.reverse();
}

/** What is wrong with an organization's ledger, in one sentence for each fault; empty when it adds up. */
export async function faultsOf(ledger: Ledger, organizationId: string): Promise<string[]> {
  const rows = await allRows(ledger, organizationId);
  const account = await ledger.balance(organizationId);
  const faults: string[] = [];
  const check = (holds: boolean, fault: string): void => void (holds || faults.push(fault));

  const sum = { available: 0, reserved: 0, spent: 0, granted: 0 };
  const open = new Map<string, number>();
  const once = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const { sequence, kind, id } = row;
    check(sequence === index + 1, `row ${sequence} is at position ${index + 1}`);
    sum.available += row.availableDeltaMicros;
    sum.reserved += row.reservedDeltaMicros;
    sum.spent += row.spentDeltaMicros;
    sum.granted += row.grantedDeltaMicros;
    check(
      row.availableMicros === sum.available && row.reservedMicros === sum.reserved,
      `running balances of row ${sequence} are wrong`,
    );
    check(
      row.availableMicros >= 0 && row.reservedMicros >= 0 && row.shortfallMicros >= 0,
      `row ${sequence} is below zero`,
    );
    const step = kind === 'SETTLE' || kind === 'RELEASE' || kind === 'EXPIRE' ? 'end' : kind;
    check(!once.has(`${step} ${id}`), `row ${sequence} is a second ${step} of ${id}`);
    once.add(`${step} ${id}`);
    if (kind === 'RESERVE') open.set(id, row.reservedDeltaMicros);
    if (step === 'end') {
      check(
        open.get(id) === 0 - row.reservedDeltaMicros,
        `row ${sequence} ends ${id} with another amount than it reserved`,
      );
      open.delete(id);
    }
    if (kind === 'LATE_SETTLE') check(once.has(`end ${id}`), `row ${sequence} settles ${id} late before its end`);
  }
  const { availableMicros, reservedMicros, spentMicros, grantedMicros, openReservations, sequence } = account;
  check(
    availableMicros + reservedMicros + spentMicros === grantedMicros,
    'available + reserved + spent is not equal to granted',
  );
  check(
    JSON.stringify([availableMicros, reservedMicros, spentMicros, grantedMicros]) ===
      JSON.stringify(Object.values(sum)),
    'the rows do not add up to the account',
  );
  check(
    reservedMicros === [...open.values()].reduce((total, amount) => total + amount, 0),
    'reserved is not the sum of the open reservations',
  );
  check(openReservations === open.size, `${open.size} reservations are open, the account says ${openReservations}`);
  check(sequence === rows.length, `the account's sequence is ${sequence}, there are ${rows.length} rows`);
  return faults;
}
