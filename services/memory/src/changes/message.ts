import type { DryRunReport, MemoryTypeChange } from 'proto/memory/v1/memory.ts';
import { examplesOf, type TypeChangeRecord } from './store.ts';

export const memoryTypeChangeMessage = (change: TypeChangeRecord): MemoryTypeChange => {
  const { action, state, checked, of, incompatible, startedAt, finishedAt } = change;
  return {
    action,
    state,
    checked,
    of,
    count: incompatible,
    examples: examplesOf(change),
    startedAt,
    finishedAt: finishedAt ?? undefined,
  };
};

/** @param version that the type would get */
export const dryRunReport = (change: TypeChangeRecord, version: number): DryRunReport => ({
  compatible: change.incompatible === 0,
  version,
  checked: change.checked,
  count: change.incompatible,
  examples: examplesOf(change),
  tookMs: Date.parse(change.finishedAt ?? change.startedAt) - Date.parse(change.startedAt),
});
