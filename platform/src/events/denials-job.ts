import { ServiceError } from '../core/errors.ts';
import { auditOp } from './outbox.ts';
import type { Job } from '../jobs/jobs.ts';
import type { Denials } from './denials.ts';
import { DuplicateKeyError, type Op, type PlatformStore } from '../store/store.ts';

interface DenialsDeps {
  denials: Denials;
  platformStore: PlatformStore;
  /** Of the audit entries: "/memory". */
  source: string;
}

/** Puts the denials that this process counted into the outbox; what could not be written is counted on. Resolves to the number of entries. */
export async function flushDenials({ denials, platformStore, source }: DenialsDeps): Promise<number> {
  const written = await applyUnsure(denials, platformStore);
  const entries = denials.drain();
  let ops: readonly Op[] = [];
  try {
    ops = entries.map((entry) => auditOp({ ...entry, source, outcome: 'denied' }));
    await platformStore.apply(ops);
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN') denials.unsure = ops;
    else for (const entry of entries) denials.note(entry);
    throw error;
  }
  return written + entries.length;
}

/** An entry that the relay has taken away meanwhile is told twice under one id, and kept once. */
async function applyUnsure(denials: Denials, platformStore: PlatformStore): Promise<number> {
  const { length } = denials.unsure;
  if (length === 0) return 0;
  await platformStore.apply(denials.unsure).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
  denials.unsure = [];
  return length;
}

export const denialsJob = ({ intervalMs, ...deps }: DenialsDeps & { intervalMs: number }): Job => ({
  name: 'denials',
  description: 'Puts counted denials into the audit trail.',
  intervalMs,
  everyReplica: true,
  run: () => flushDenials(deps),
});
