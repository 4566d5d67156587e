import type { ExecutionRecord } from './store.ts';

export type SettledRun = Pick<ExecutionRecord, '_id' | 'organizationId'>;

export interface SettledRuns {
  note(run: SettledRun): void;
  /** Removes and returns what was noted since the last call. */
  drain(): SettledRun[];
}

/**
 * Holds in memory which runs are settled until the job `settled` marks them, many in one batch. What is lost with the
 * process is settled again by the reaper, which changes nothing.
 */
export function makeSettledRuns(): SettledRuns {
  let noted: SettledRun[] = [];
  return {
    note({ _id, organizationId }) {
      noted.push({ _id, organizationId });
    },
    drain() {
      const drained = noted;
      noted = [];
      return drained;
    },
  };
}
