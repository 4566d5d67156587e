import { machineClock } from 'platform/core/clock.ts';
import { MOST_ROWS, readEngine, waiting } from 'platform/service/metrics.ts';
import { MAX_WAIT_MS } from 'platform/service/diagnose.ts';
import { counter, gauge, reading, type Metrics } from 'platform/telemetry/metrics.ts';
import type { Ledger, OpenLedger } from './ledger.ts';

const RESERVES = counter(
  'agentmemory_reservations_total',
  'Credits that runs asked to hold, by what came of it: reserved, or the reason against it.',
  ['outcome'],
);
const ENDED = counter(
  'agentmemory_reservations_ended_total',
  'Reservations that were settled or released, or that the sweeper let expire; a repeated call counts again.',
  ['state'],
);
const LATE = gauge(
  'agentmemory_reservations_late_organizations',
  'How many organizations have credits held by a reservation whose time was over a minute ago, up to 200.',
);
export const LEDGER_METRICS = [RESERVES, ENDED, LATE] as const;

/** Organizations that one scrape looks at, and rows of each. */
const LOOKED_AT = 200;
const ROWS_EACH = 100;

/** The ledger, of which it counts what was held and given back. */
export const countReservations = (metrics: Metrics, ledger: Ledger): Ledger =>
  metrics.isOn
    ? {
        ...ledger,
        async reserve(...call) {
          const result = await ledger.reserve(...call);
          metrics.add(RESERVES, { outcome: result.outcome.toLowerCase() });
          return result;
        },
        async settle(...call) {
          const result = await ledger.settle(...call);
          if (result.outcome === 'FOUND') metrics.add(ENDED, { state: result.state.toLowerCase() });
          return result;
        },
        async release(...call) {
          const result = await ledger.release(...call);
          if (result.outcome === 'FOUND') metrics.add(ENDED, { state: result.state.toLowerCase() });
          return result;
        },
        async expire(...call) {
          const count = await ledger.expire(...call);
          metrics.add(ENDED, { state: 'expired' }, count);
          return count;
        },
      }
    : ledger;

/** The rows of the ledger are its outbox. */
export function readLedger(
  metrics: Metrics,
  { ledger, platformLedger }: Pick<OpenLedger, 'ledger' | 'platformLedger'>,
  engine: string,
): void {
  readEngine(metrics, 'ledger', engine, () => platformLedger.organizationsDue('', 1));
  metrics.read(async () => {
    const late = await platformLedger.organizationsExpiring(machineClock.now() - MAX_WAIT_MS, '', LOOKED_AT);
    return [reading(LATE, {}, late.length)];
  });
  metrics.read(async () => {
    const organizations = await platformLedger.organizationsUnrelayed('', LOOKED_AT);
    let rows = 0;
    let oldestMs = Infinity;
    for (const organizationId of organizations) {
      const unrelayed = await ledger.unrelayed(organizationId, rows < MOST_ROWS ? ROWS_EACH : 1);
      rows += unrelayed.length;
      for (const { createdAt } of unrelayed.slice(0, 1)) oldestMs = Math.min(oldestMs, Date.parse(createdAt));
    }
    return waiting(Math.min(rows, MOST_ROWS), oldestMs === Infinity ? undefined : oldestMs);
  });
}
