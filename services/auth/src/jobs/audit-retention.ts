import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { NO_ID } from '../audit/store.ts';
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
    const allOf = async (removeSome: () => Promise<number>): Promise<void> => {
      for (let removed = BATCH; removed === BATCH && !signal.aborted; count += removed) removed = await removeSome();
    };
    await allOf(() => auditEntries.removeUnchained(removeBefore, BATCH));
    for (let after = NO_ID, found = BATCH; found === BATCH && !signal.aborted;) {
      const heads = await auditEntries.headsAfter(after, BATCH);
      for (const { _id } of heads) await allOf(() => auditEntries.cutChain(_id, removeBefore, BATCH));
      found = heads.length;
      after = heads.at(-1)?._id ?? after;
    }
    return count;
  },
});
