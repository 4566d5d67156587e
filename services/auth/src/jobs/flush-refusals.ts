import { auditOp } from 'platform/events/outbox.ts';
import type { Job } from 'platform/jobs.ts';
import { SOURCE } from '../audited.ts';
import type { Deps } from '../deps.ts';

type Parts = Pick<Deps, 'refusals' | 'platformStore'>;

/** Puts the refusals that this process counted into the outbox; what could not be written is counted on. Resolves to the number of entries. */
export async function flushRefusals({ refusals, platformStore }: Parts): Promise<number> {
  const entries = refusals.drain();
  try {
    await platformStore.apply(entries.map((entry) => auditOp({ ...entry, source: SOURCE, outcome: 'denied' })));
  } catch (error) {
    for (const entry of entries) refusals.note(entry);
    throw error;
  }
  return entries.length;
}

export const flushRefusalsJob = (deps: Parts & Pick<Deps, 'config'>): Job => ({
  name: 'refusals',
  description: 'Puts counted refusals into the audit trail.',
  intervalMs: deps.config.REFUSAL_FLUSH_MS,
  everyReplica: true,
  run: () => flushRefusals(deps),
});
