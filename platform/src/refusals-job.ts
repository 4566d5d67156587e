import { auditOp } from './events/outbox.ts';
import type { Job } from './jobs.ts';
import type { Refusals } from './refusals.ts';
import type { PlatformStore } from './store/store.ts';

interface RefusalsDeps {
  refusals: Refusals;
  platformStore: PlatformStore;
  /** Of the audit entries: "/memory". */
  source: string;
}

/** Puts the refusals that this process counted into the outbox; what could not be written is counted on. Resolves to the number of entries. */
export async function flushRefusals({ refusals, platformStore, source }: RefusalsDeps): Promise<number> {
  const entries = refusals.drain();
  try {
    await platformStore.apply(entries.map((entry) => auditOp({ ...entry, source, outcome: 'denied' })));
  } catch (error) {
    for (const entry of entries) refusals.note(entry);
    throw error;
  }
  return entries.length;
}

export const refusalsJob = ({ intervalMs, ...deps }: RefusalsDeps & { intervalMs: number }): Job => ({
  name: 'refusals',
  description: 'Puts counted refusals into the audit trail.',
  intervalMs,
  everyReplica: true,
  run: () => flushRefusals(deps),
});
