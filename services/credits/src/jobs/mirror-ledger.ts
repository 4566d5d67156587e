import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import type { Mirroring } from '../ledger/ledger.ts';
import { eachOrganization } from './each-organization.ts';

/**
 * Takes rows out of the engine whether or not the event bus does, so that an outage of the bus does not fill the engine.
 * Organizations take turns, a batch each.
 */
export const mirror = (
  { organizationsUnmirrored, mirror: mirrorBatch }: Mirroring,
  { config }: Pick<Deps, 'config'>,
): Job => ({
  name: 'mirror',
  description: 'Copies new ledger rows to the document store, and trims the engine.',
  intervalMs: config.RELAY_INTERVAL_MS,
  async run(signal) {
    let count = 0;
    let more: boolean;
    do {
      more = false;
      for await (const organizationId of eachOrganization(organizationsUnmirrored, signal)) {
        more = (await mirrorBatch(organizationId)) || more;
        count++;
      }
    } while (more && !signal.aborted);
    return count;
  },
});
