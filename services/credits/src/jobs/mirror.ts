import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import type { Mirroring } from '../ledger/ledger.ts';
import { eachOrganization } from './each-organization.ts';

/**
 * Copies rows to the document store whether or not the event bus works, so that the engine does not fill up during an
 * outage of the bus. Copies one batch for each organization in turn until nothing is left.
 */
export const mirrorJob = ({ organizationsUnmirrored, mirror }: Mirroring, { config }: Pick<Deps, 'config'>): Job => ({
  name: 'mirror',
  description: 'Copies new ledger rows to the document store, and trims the engine.',
  intervalMs: config.RELAY_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    let more: boolean;
    do {
      more = false;
      for await (const organizationId of eachOrganization(organizationsUnmirrored, signal)) {
        more = (await mirror(organizationId)) || more;
        count++;
      }
    } while (more && !signal.aborted);
    return count;
  },
});
