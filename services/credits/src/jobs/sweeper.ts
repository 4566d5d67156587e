import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { eachOrganization } from './each-organization.ts';

const BATCH = 100;
const FORGET_BATCH = 1_000;

/** Expires what is due in every organization (a reserve does so for its own; this is for those that reserve nothing), and forgets what nobody may ask for any more. */
export const sweeper = ({
  ledger,
  platformLedger,
  config,
}: Pick<Deps, 'ledger' | 'platformLedger' | 'config'>): Job => ({
  name: 'sweeper',
  description:
    'Expires reservations whose time is over, so that their credits are available again, and deletes ended ones past the retention.',
  intervalMs: config.SWEEP_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    for await (const organizationId of eachOrganization(platformLedger.organizationsDue, signal)) {
      let expired: number;
      do count += expired = await ledger.expire(organizationId, BATCH);
      while (expired === BATCH && !signal.aborted);
    }
    let forgotten: number;
    do count += forgotten = await platformLedger.forget(FORGET_BATCH);
    while (forgotten === FORGET_BATCH && !signal.aborted);
    return count;
  },
});
