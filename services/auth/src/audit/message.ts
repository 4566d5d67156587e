import type { AuditEntry } from 'proto/auth/v1/auth.ts';
import type { AuditEntryRecord } from './store.ts';

export const auditEntryMessage = ({ _id, targetType, targetId, code, ...facts }: AuditEntryRecord): AuditEntry => ({
  ...facts,
  id: _id,
  targetType: targetType ?? undefined,
  targetId: targetId ?? undefined,
  code: code ?? undefined,
});
