import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { AuditEntryRecord } from '../audit/store.ts';
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
    // An entry whose time has come stays while its chain has an earlier one whose time has not.
    for (let after: AuditEntryRecord | undefined, more = true; more && !signal.aborted;) {
      const { removed, last } = await auditEntries.removeBefore(removeBefore, after, BATCH);
      count += removed;
      more = last !== undefined;
      after = removed > 0 ? undefined : last;
    }
    return count;
  },
});
