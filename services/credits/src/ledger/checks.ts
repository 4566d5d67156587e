import { machineClock } from 'platform/core/clock.ts';
import { MAX_WAIT_MS, pending, type Check } from 'platform/service/diagnose.ts';
import type { Deps } from '../deps.ts';

/** Organizations that a check looks at; of more it says "at least". */
const LOOKED_AT = 200;

/** What `admin doctor` looks at in the ledger. */
export const ledgerChecks = ({ ledger, platformLedger }: Pick<Deps, 'ledger' | 'platformLedger'>): Check[] => [
  {
    name: 'pending events',
    async look() {
      const organizations = await platformLedger.organizationsUnrelayed('', LOOKED_AT);
      const rows = (await Promise.all(organizations.map((one) => ledger.unrelayed(one, 1_000)))).flat();
      const times = rows.map(({ createdAt }) => Date.parse(createdAt));
      return pending(rows.length, times.length > 0 ? Math.min(...times) : undefined);
    },
  },
  {
    name: 'reservations',
    async look() {
      const [organizations, overdue] = await Promise.all([
        platformLedger.organizationsExpiring(Number.MAX_SAFE_INTEGER, '', LOOKED_AT),
        platformLedger.organizationsExpiring(machineClock.now() - MAX_WAIT_MS, '', LOOKED_AT),
      ]);
      const accounts = await Promise.all(organizations.map((one) => ledger.balance(one)));
      const open = accounts.reduce((sum, { openReservations }) => sum + openReservations, 0);
      const late = overdue.length > 0 ? `; the sweeper is late; organizations: ${overdue.length}` : '';
      const atLeast = organizations.length === LOOKED_AT ? 'at least ' : '';
      return { fine: overdue.length === 0, sentence: `${atLeast}${open} open${late}` };
    },
  },
];
