import type { EventBus } from 'platform/events/bus.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { grantAuditEntry, ledgerRowEvent } from '../events.ts';
import { eachOrganization } from './each-organization.ts';

const BATCH = 200;

interface Needs extends Pick<Deps, 'ledger' | 'platformLedger'> {
  bus: Pick<EventBus, 'publish'>;
  config: Pick<Deps['config'], 'RELAY_INTERVAL_MS'>;
}

/**
 * Publishes ledger rows in order within each organization, then acknowledges them. The rows are their own outbox: after
 * a crash between publishing and acknowledging, a row is published again with the same event id.
 * Publishes one batch for each organization in turn until nothing is left.
 */
export const relayJob = ({ ledger, platformLedger, bus, config }: Needs): Job => ({
  name: 'relay',
  description: 'Publishes the ledger rows that the event bus does not have yet, and the audit entries of grants.',
  intervalMs: config.RELAY_INTERVAL_MS,
  async run(signal) {
    const relayBatch = async (organizationId: string): Promise<number> => {
      const rows = await ledger.unrelayed(organizationId, BATCH);
      const last = rows.at(-1);
      if (!last) return 0;
      const grants = rows.filter((row) => row.kind === 'GRANT');
      await bus.publish(
        'credits.ledger.v1',
        rows.map((row) => ledgerRowEvent(organizationId, row)),
      );
      if (grants.length > 0)
        await bus.publish(
          'audit.v1',
          grants.map((row) => grantAuditEntry(organizationId, row)),
        );
      await ledger.acknowledge(organizationId, last.sequence);
      return rows.length;
    };

    let count = 0;
    let before: number;
    do {
      before = count;
      for await (const organizationId of eachOrganization(platformLedger.organizationsUnrelayed, signal))
        count += await relayBatch(organizationId);
    } while (count > before && !signal.aborted);
    return count;
  },
});
