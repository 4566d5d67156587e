import type { AuditChange, AuditEntry } from 'proto/auth/v1/auth.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { AuditChanges, AuditValue } from 'platform/events/audit-changes.ts';
import type { AuditEntryRecord } from './store.ts';

export const auditEntryMessage = ({
  _id,
  targetType,
  targetId,
  code,
  changes,
  ...facts
}: AuditEntryRecord): AuditEntry => ({
  ...facts,
  id: _id,
  targetType: targetType ?? undefined,
  targetId: targetId ?? undefined,
  code: code ?? undefined,
  changes: changes === undefined || changes === null ? [] : changeMessages(parseJson(changes) as AuditChanges),
});

const changeMessages = (changes: AuditChanges): AuditChange[] =>
  Object.entries(changes).map(([field, [before, after]]) => ({
    field,
    before: textsOf(before),
    after: textsOf(after),
  }));

const textsOf = (value: AuditValue): string[] => {
  if (value === null) return [];
  return typeof value === 'object' ? [...value] : [String(value)];
};
