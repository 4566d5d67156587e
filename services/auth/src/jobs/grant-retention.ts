import { DAY_MS, HOUR_MS, isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';

const BATCH = 500;

export const grantRetentionJob = ({ grants, clock }: Pick<Deps, 'grants' | 'clock'>): Job => ({
  name: 'grant-retention',
  description: 'Removes grants a day after their end.',
  intervalMs: HOUR_MS,
  async run(signal) {
    const removeBefore = isoTime(clock.now() - DAY_MS);
    let count = 0;
    for (let removed = BATCH; removed === BATCH && !signal.aborted; count += removed)
      removed = await grants.removeBefore(removeBefore, BATCH);
    return count;
  },
});
