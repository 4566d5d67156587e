import { eventText, type CloudEvent, type EventBus, type EventText } from 'platform/events/bus.ts';
import { RELAY_PACE_MS } from 'platform/events/relay.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { grantAuditEntry, ledgerRowEvent } from '../events.ts';
import type { LedgerRow } from '../ledger/ledger.ts';
import { eachOrganization } from './each-organization.ts';

/** Rows of one organization in a batch, so that one with many rows does not hold up the others. */
const ORGANIZATION_ROWS = 200;
const BATCH = 500;
const BATCH_ORGANIZATIONS = 100;

interface Needs extends Pick<Deps, 'ledger' | 'platformLedger'> {
  bus: Pick<EventBus, 'publish'>;
  config: Pick<Deps['config'], 'RELAY_INTERVAL_MS'>;
}

/**
 * Publishes ledger rows in order within each organization, then acknowledges them: many organizations in one batch.
 * The rows are their own outbox: after a crash between publishing and acknowledging, a row is published again with the
 * same event id. Takes some rows of each organization in turn until nothing is left.
 */
export const relayJob = ({ ledger, platformLedger, bus, config }: Needs): Job => ({
  name: 'relay',
  description: 'Publishes the ledger rows that the event bus does not have yet, and the audit entries of grants.',
  intervalMs: config.RELAY_INTERVAL_MS,
  paceMs: RELAY_PACE_MS,
  async run(signal) {
    type Rows = { organizationId: string; rows: LedgerRow[] };

    async function relayBatch(batch: readonly Rows[]): Promise<void> {
      const each = (eventOf: (organizationId: string, row: LedgerRow) => CloudEvent[]): EventText[] =>
        batch.flatMap(({ organizationId, rows }) => rows.flatMap((row) => eventOf(organizationId, row).map(eventText)));
      const grants = each((organizationId, row) =>
        row.kind === 'GRANT' ? [grantAuditEntry(organizationId, row)] : [],
      );
      await Promise.all([
        bus.publish(
          'credits.ledger.v1',
          each((organizationId, row) => [ledgerRowEvent(organizationId, row)]),
        ),
        ...(grants.length > 0 ? [bus.publish('audit.v1', grants)] : []),
      ]);
      await Promise.all(
        batch.map(({ organizationId, rows }) => ledger.acknowledge(organizationId, rows.at(-1)!.sequence)),
      );
    }

    /** Relays the oldest rows of every organization; resolves to their number. */
    async function relayOnce(): Promise<number> {
      let count = 0;
      let batch: Rows[] = [];
      let size = 0;
      for await (const organizationId of eachOrganization(platformLedger.organizationsUnrelayed, signal)) {
        const rows = await ledger.unrelayed(organizationId, ORGANIZATION_ROWS);
        if (rows.length === 0) continue;
        batch.push({ organizationId, rows });
        count += rows.length;
        size += rows.length;
        if (size < BATCH && batch.length < BATCH_ORGANIZATIONS) continue;
        await relayBatch(batch);
        [batch, size] = [[], 0];
      }
      if (batch.length > 0) await relayBatch(batch);
      return count;
    }

    let count = 0;
    for (let relayed = 1; relayed > 0 && !signal.aborted; count += relayed) relayed = await relayOnce();
    return count;
  },
});
