import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

const BATCH = 500;

export const auditRetentionJob = ({
  auditEntries,
  clock,
  config,
}: Pick<Deps, 'auditEntries' | 'clock' | 'config'>): Job => ({
  name: 'audit-retention',
  description: 'Removes audit entries past their retention.',
  intervalMs: config.AUDIT_RETENTION_INTERVAL_MS,
  async run(signal) {
    const removeBefore = isoTime(clock.now() - config.AUDIT_RETENTION_DAYS * DAY_MS);
    let count = 0;
    for (let removed = BATCH; removed === BATCH && !signal.aborted; count += removed)
      removed = await auditEntries.removeBefore(removeBefore, BATCH);
    return count;
  },
});
