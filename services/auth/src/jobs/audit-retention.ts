import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

const BATCH = 500;

/** Removes audit entries past their retention, a batch at a time. */
export const auditRetentionJob = ({
  auditTrail,
  clock,
  config,
}: Pick<Deps, 'auditTrail' | 'clock' | 'config'>): Job => ({
  name: 'audit-retention',
  description: 'Removes audit entries past their retention.',
  intervalMs: config.AUDIT_RETENTION_INTERVAL_MS,
  async run(signal) {
    const limit = isoTime(clock.now() - config.AUDIT_RETENTION_DAYS * DAY_MS);
    let count = 0;
    for (let removed = BATCH; removed === BATCH && !signal.aborted; count += removed)
      removed = await auditTrail.removeBefore(limit, BATCH);
    return count;
  },
});
