import { ServiceError } from '../core/errors.ts';
import { auditOp } from './outbox.ts';
import type { Job } from '../jobs/jobs.ts';
import type { Refusals } from './denials.ts';
import { DuplicateKey, type Op, type PlatformStore } from '../store/store.ts';

interface RefusalsDeps {
  refusals: Refusals;
  platformStore: PlatformStore;
  /** Of the audit entries: "/memory". */
  source: string;
}

/** Puts the refusals that this process counted into the outbox; what could not be written is counted on. Resolves to the number of entries. */
export async function flushRefusals({ refusals, platformStore, source }: RefusalsDeps): Promise<number> {
  const written = await applyUnsure(refusals, platformStore);
  const entries = refusals.drain();
  let ops: readonly Op[] = [];
  try {
    ops = entries.map((entry) => auditOp({ ...entry, source, outcome: 'denied' }));
    await platformStore.apply(ops);
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN') refusals.unsure = ops;
    else for (const entry of entries) refusals.note(entry);
    throw error;
  }
  return written + entries.length;
}

/** An entry that the relay has taken away meanwhile is told twice under one id, and kept once. */
async function applyUnsure(refusals: Refusals, platformStore: PlatformStore): Promise<number> {
  const { length } = refusals.unsure;
  if (length === 0) return 0;
  await platformStore.apply(refusals.unsure).catch((error: unknown) => {
    if (!(error instanceof DuplicateKey)) throw error;
  });
  refusals.unsure = [];
  return length;
}

export const refusalsJob = ({ intervalMs, ...deps }: RefusalsDeps & { intervalMs: number }): Job => ({
  name: 'refusals',
  description: 'Puts counted refusals into the audit trail.',
  intervalMs,
  everyReplica: true,
  run: () => flushRefusals(deps),
});
