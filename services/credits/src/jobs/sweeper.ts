import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { eachOrganization } from './each-organization.ts';

const BATCH = 100;
const DELETE_BATCH = 1_000;

/**
 * Expires due reservations in every organization: a reserve does this for its own organization, so this is for those
 * that reserve nothing. Deletes ended reservations whose ids have left the retention window.
 */
export const sweeperJob = ({
  ledger,
  platformLedger,
  config,
}: Pick<Deps, 'ledger' | 'platformLedger' | 'config'>): Job => ({
  name: 'sweeper',
  description:
    'Expires reservations whose time is over, so that their credits are available again, ' +
    'and deletes ended ones past the retention.',
  intervalMs: config.SWEEP_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    for await (const organizationId of eachOrganization(platformLedger.organizationsDue, signal)) {
      let expired: number;
      do count += expired = await ledger.expire(organizationId, BATCH);
      while (expired === BATCH && !signal.aborted);
    }
    let deleted: number;
    do count += deleted = await platformLedger.deleteEnded(DELETE_BATCH);
    while (deleted === DELETE_BATCH && !signal.aborted);
    return count;
  },
});
