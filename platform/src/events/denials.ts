import { ServiceError } from '../core/errors.ts';
import type { Job } from '../jobs/jobs.ts';
import { DuplicateKeyError, type Op, type PlatformStore } from '../store/store.ts';
import { auditOp, type AuditFacts } from './outbox.ts';

/** Denied requests that count as one: an audit entry without its source and outcome. */
export type DenialEntry = Omit<AuditFacts, 'source' | 'outcome' | 'code' | 'count'> & { code: string; count: number };

export interface Denials {
  /** Counts one denied request in memory, or an entry that could not be written once more. */
  note(denial: Omit<DenialEntry, 'action' | 'count'> & Partial<DenialEntry>): void;
  /** Takes out what was noted since the last call. */
  drain(): DenialEntry[];
  /** A batch that may have been written: it is applied again as it is, under the same ids. */
  unknown: readonly Op[];
}

/**
 * Counts denied requests. Those of one principal for one reason within one minute are one entry, so that a flood is not a
 * write per request.
 */
export function makeDenials(): Denials {
  const entries = new Map<string, DenialEntry>();
  return {
    unknown: [],
    note({ action = 'request.refused', count = 1, ...denial }) {
      const { organizationId, actor, code, time } = denial;
      const minute = time.slice(0, 'yyyy-mm-ddThh:mm'.length);
      const key = JSON.stringify([organizationId, actor.kind, actor.id, action, code, minute]);
      const entry = entries.get(key);
      if (entry) entry.count += count;
      else entries.set(key, { ...denial, action, count });
    },
    drain() {
      const drained = [...entries.values()];
      entries.clear();
      return drained;
    },
  };
}

interface DenialsDeps {
  denials: Denials;
  platformStore: PlatformStore;
  /** Source of the audit entries: "/memory". */
  source: string;
}

/** Writes the counted denials to the outbox; resolves to the number of entries. What could not be written stays counted. */
export async function flushDenials({ denials, platformStore, source }: DenialsDeps): Promise<number> {
  const written = await applyUnknown(denials, platformStore);
  const entries = denials.drain();
  let ops: readonly Op[] = [];
  try {
    ops = entries.map((entry) => auditOp({ ...entry, source, outcome: 'denied' }));
    await platformStore.apply(ops);
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN') denials.unknown = ops;
    else for (const entry of entries) denials.note(entry);
    throw error;
  }
  return written + entries.length;
}

/** An entry that the relay has published meanwhile is published again under its id, and the audit trail keeps one. */
async function applyUnknown(denials: Denials, platformStore: PlatformStore): Promise<number> {
  const { length } = denials.unknown;
  if (length === 0) return 0;
  await platformStore.apply(denials.unknown).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
  denials.unknown = [];
  return length;
}

export const denialsJob = ({ intervalMs, ...deps }: DenialsDeps & { intervalMs: number }): Job => ({
  name: 'denials',
  description: 'Puts counted denials into the audit trail.',
  intervalMs,
  everyReplica: true,
  run: () => flushDenials(deps),
});
