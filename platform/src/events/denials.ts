import type { AuditFacts } from './outbox.ts';
import type { Op } from '../store/store.ts';

/** Denials alike: an audit entry but for its source and outcome. */
export type DenialEntry = Omit<AuditFacts, 'source' | 'outcome' | 'code' | 'count'> & { code: string; count: number };

export interface Denials {
  /** Counts one refusal in memory (or an entry that could not be written, again). */
  note(refusal: Omit<DenialEntry, 'action' | 'count'> & Partial<DenialEntry>): void;
  /** Takes out what was noted since the last time. */
  drain(): DenialEntry[];
  /** A batch of entries that may have been written: it is applied again as it is, under the same ids. */
  unsure: readonly Op[];
}

/** Denials of one principal for one reason within one minute are one entry with a count, so that a flood is not a write per request. */
export function makeDenials(): Denials {
  const entries = new Map<string, DenialEntry>();
  return {
    unsure: [],
    note({ action = 'request.refused', count = 1, ...refusal }) {
      const { organizationId, actor, code, time } = refusal;
      const minute = time.slice(0, 'yyyy-mm-ddThh:mm'.length);
      const key = JSON.stringify([organizationId, actor.kind, actor.id, action, code, minute]);
      const entry = entries.get(key);
      if (entry) entry.count += count;
      else entries.set(key, { ...refusal, action, count });
    },
    drain() {
      const drained = [...entries.values()];
      entries.clear();
      return drained;
    },
  };
}
