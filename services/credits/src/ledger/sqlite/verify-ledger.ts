import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Chains } from 'platform/service/verify-copy.ts';

/** Rows that do not follow from those before them. */
const BROKEN = `WITH followed AS (
    SELECT organizationId, sequence, availableMicros, reservedMicros, row_number() OVER chain AS place,
      sum(availableDeltaMicros) OVER chain AS available, sum(reservedDeltaMicros) OVER chain AS reserved,
      sum(spentDeltaMicros) OVER chain AS spent, sum(grantedDeltaMicros) OVER chain AS granted
    FROM ledgerRows WINDOW chain AS (PARTITION BY organizationId ORDER BY sequence ROWS UNBOUNDED PRECEDING))
  SELECT organizationId, min(sequence) AS sequence FROM followed
  WHERE place <> sequence OR available <> availableMicros OR reserved <> reservedMicros
    OR available + reserved + spent <> granted OR min(available, reserved, spent, granted) < 0
  GROUP BY organizationId`;

/** Accounts that are not what their rows and open reservations come to, and rows without an account. */
const DIFFERING = `WITH sums AS (
    SELECT organizationId, count(*) AS sequence, sum(availableDeltaMicros) AS availableMicros,
      sum(reservedDeltaMicros) AS reservedMicros, sum(spentDeltaMicros) AS spentMicros,
      sum(grantedDeltaMicros) AS grantedMicros
    FROM ledgerRows GROUP BY organizationId),
  held AS (
    SELECT organizationId, count(*) AS openReservations, sum(amountMicros) AS micros
    FROM ledgerReservations WHERE state = 'OPEN' GROUP BY organizationId)
  SELECT coalesce(sums.organizationId, account.organizationId) AS organizationId
  FROM sums FULL JOIN ledgerAccounts AS account USING (organizationId)
    LEFT JOIN held ON held.organizationId = account.organizationId
  WHERE (sums.sequence, sums.availableMicros, sums.reservedMicros, sums.spentMicros, sums.grantedMicros) IS NOT
      (account.sequence, account.availableMicros, account.reservedMicros, account.spentMicros, account.grantedMicros)
    OR coalesce(held.openReservations, 0) <> account.openReservations
    OR coalesce(held.micros, 0) <> account.reservedMicros`;

const ENDS =
  'SELECT organizationId, sequence, availableMicros, reservedMicros FROM ledgerAccounts ORDER BY organizationId';

/** Follows the ledgers of all organizations in a file that nobody writes. */
export function verifyLedger(file: string): Chains {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const ends = createHash('sha256');
    let organizations = 0;
    for (const row of db.prepare(ENDS).iterate()) {
      organizations += 1;
      ends.update(`${Object.values(row).join(' ')}\n`);
    }
    const broken = db.prepare(BROKEN).all();
    const differing = db.prepare(DIFFERING).all();
    return {
      organizations,
      links: Number(db.prepare('SELECT count(*) AS n FROM ledgerRows').get()!.n),
      ends: ends.digest('hex'),
      faults: [
        ...broken.map(
          ({ organizationId, sequence }) =>
            `Row ${String(sequence)} of the ledger of the organization ${String(organizationId)} does not follow from ` +
            'those before it',
        ),
        ...differing.map(
          ({ organizationId }) =>
            `The account of the organization ${String(organizationId)} is not what its ledger comes to`,
        ),
      ],
    };
  } finally {
    db.close();
  }
}
