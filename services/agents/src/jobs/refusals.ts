import type { Job } from 'platform/jobs.ts';
import { flushRefusals, refusalsJob } from 'platform/refusals-job.ts';
import type { Deps } from '../deps.ts';

type Used = Pick<Deps, 'refusals' | 'platformStore'>;

/** Takes refused runs (402, 429), counted in memory, to the audit trail. */
export const refusals = (deps: Used & Pick<Deps, 'config'>): Job => refusalsJob({ ...parts(deps), intervalMs: deps.config.REFUSALS_INTERVAL_MS });

/** The last of them, when the process stops. */
export const flushLastRefusals = async (deps: Used): Promise<void> => void (await flushRefusals(parts(deps)));

const parts = ({ refusals, platformStore }: Used) => ({ refusals, platformStore, source: '/agents' });
