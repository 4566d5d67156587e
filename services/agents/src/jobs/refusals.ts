import { auditOp } from 'platform/events/outbox.ts';
import type { Job } from 'platform/jobs.ts';
import type { Deps } from '../deps.ts';

type RefusalDeps = Pick<Deps, 'refusals' | 'platformStore' | 'config'>;

/** Writes the refusals counted in this process to the audit trail. */
export const refusals = (deps: RefusalDeps): Job => ({
  name: 'refusals',
  description: 'Writes the refusals counted meanwhile to the audit trail.',
  intervalMs: deps.config.REFUSALS_INTERVAL_MS,
  everyReplica: true,
  run: () => writeRefusals(deps),
});

/** Resolves to the number of entries written; those of a write that failed are counted again. */
export async function writeRefusals({ refusals, platformStore }: Omit<RefusalDeps, 'config'>): Promise<number> {
  const entries = refusals.drain();
  if (entries.length === 0) return 0;
  try {
    await platformStore.apply(entries.map((entry) => auditOp({ ...entry, source: '/agents', outcome: 'denied' })));
  } catch (error) {
    for (const entry of entries) refusals.note(entry);
    throw error;
  }
  return entries.length;
}
