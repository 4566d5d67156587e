/** A value of a field that changed; null: it had or has none. */
export type AuditValue = string | number | boolean | null | readonly string[];
/** By field: what it was before and what it is after. Names and states, never content or secrets. */
export type AuditChanges = Readonly<Record<string, readonly [before: AuditValue, after: AuditValue]>>;

type State = Readonly<Record<string, AuditValue | undefined>>;

/** Of one text, and of all texts of a change together. */
const MAX_TEXT = 120;
const MAX_TEXTS = 4_000;
export const MAX_CHANGED_FIELDS = 20;
/** Of the changes as JSON. */
export const MAX_CHANGES_BYTES = 32_768;

/**
 * The fields in which two states differ; one that is absent is null. Longer texts are cut and lists of many end with
 * "…", so that an event has room for the changes.
 */
export function changesOf(before: State, after: State): AuditChanges {
  const changes: Record<string, readonly [AuditValue, AuditValue]> = {};
  const room = { left: MAX_TEXTS };
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[field] ?? null, after[field] ?? null];
    if (JSON.stringify(was) !== JSON.stringify(is)) changes[field] = [bounded(was, room), bounded(is, room)];
  }
  return changes;
}

function bounded(value: AuditValue, room: { left: number }): AuditValue {
  if (typeof value === 'string') return boundedText(value, room);
  if (value === null || typeof value !== 'object') return value;
  const kept: string[] = [];
  for (const text of value) {
    if (room.left <= 0) return [...kept, '…'];
    kept.push(boundedText(text, room));
  }
  return kept;
}

function boundedText(text: string, room: { left: number }): string {
  const max = Math.max(0, Math.min(MAX_TEXT, room.left));
  room.left -= Math.max(1, text.length);
  return text.length <= max ? text : `${text.slice(0, max)}…`.toWellFormed();
}
