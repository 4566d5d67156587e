import { ServiceError } from '../core/errors.ts';
import type { Job } from '../jobs/jobs.ts';
import { DuplicateKeyError, type Op, type PlatformStore } from '../store/store.ts';
import { changesOf } from './audit-changes.ts';
import { auditEntryOp, type NewAuditEntry } from './outbox.ts';

/** Denied requests that are counted together: an audit entry without its source and outcome. */
export type DenialEntry = Omit<NewAuditEntry, 'source' | 'outcome' | 'code' | 'count'> & {
  code: string;
  count: number;
  /** Which methods were denied, if more than that of the first request: up to ten, and "…" for further ones. */
  methods?: readonly string[];
};

const MAX_METHODS = 10;
const FURTHER = '…';

export interface Denials {
  /** Counts a denied request in memory; also takes back an entry that could not be written. */
  note(denial: Omit<DenialEntry, 'action' | 'count'> & Partial<DenialEntry>): void;
  /** Removes and returns what was noted since the last call. */
  drain(): DenialEntry[];
  /** A batch of which it is unknown whether it was written. The next flush applies it again, with the same ids. */
  unconfirmed: readonly Op[];
}

/**
 * Counts denied requests. Those of one principal for one reason within one minute become one entry, so that many denied
 * requests cost few writes.
 */
export function makeDenials(): Denials {
  const entries = new Map<string, DenialEntry>();
  return {
    unconfirmed: [],
    note({ action = 'request.refused', count = 1, methods, ...denial }) {
      const { organizationId, actor, code, time } = denial;
      const minute = time.slice(0, 'yyyy-mm-ddThh:mm'.length);
      const key = JSON.stringify([organizationId, actor.kind, actor.id, action, code, minute]);
      const entry = entries.get(key);
      if (entry) entry.count += count;
      else entries.set(key, { ...denial, action, count });
      addMethods(entry ?? entries.get(key)!, methods ?? methodsOf(denial));
    },
    drain() {
      const drained = [...entries.values()];
      entries.clear();
      return drained;
    },
  };
}

const methodsOf = ({ target, methods }: Pick<DenialEntry, 'target' | 'methods'>): readonly string[] =>
  methods ?? (target?.type === 'method' ? [target.id] : []);

function addMethods(entry: DenialEntry, more: readonly string[]): void {
  const present = methodsOf(entry);
  if (present.includes(FURTHER) || more.every((method) => present.includes(method))) return;
  const all = [...new Set([...present, ...more])].filter((method) => method !== FURTHER);
  const isMore = all.length > MAX_METHODS || more.includes(FURTHER);
  entry.methods = isMore ? [...all.slice(0, MAX_METHODS), FURTHER] : all;
}

interface Needs {
  denials: Denials;
  platformStore: PlatformStore;
  /** Source of the audit entries: "/memory". */
  source: string;
}

/**
 * Writes the counted denials to the outbox; resolves to the number of entries. If that fails, they stay counted.
 * @throws ServiceError of the store
 */
export async function flushDenials({ denials, platformStore, source }: Needs): Promise<number> {
  const written = await applyUnconfirmed(denials, platformStore);
  const entries = denials.drain();
  let ops: readonly Op[] = [];
  try {
    ops = entries.map(({ methods, ...entry }) =>
      auditEntryOp({ ...entry, changes: changesOf({}, { methods }), source, outcome: 'denied' }),
    );
    await platformStore.apply(ops);
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN') denials.unconfirmed = ops;
    else for (const entry of entries) denials.note(entry);
    throw error;
  }
  return written + entries.length;
}

/** An entry that the relay has published meanwhile is published again with the same id; the audit trail keeps one. */
async function applyUnconfirmed(denials: Denials, platformStore: PlatformStore): Promise<number> {
  const { length } = denials.unconfirmed;
  if (length === 0) return 0;
  await platformStore.apply(denials.unconfirmed).catch((error: unknown) => {
    if (!(error instanceof DuplicateKeyError)) throw error;
  });
  denials.unconfirmed = [];
  return length;
}

export const denialsJob = ({ intervalMs, ...deps }: Needs & { intervalMs: number }): Job => ({
  name: 'denials',
  description: 'Writes counted denials to the audit trail.',
  intervalMs,
  everyReplica: true,
  run: () => flushDenials(deps),
});
