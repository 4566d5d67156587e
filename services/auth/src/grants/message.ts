import type { Grant } from 'proto/auth/v1/auth.ts';
import type { GrantRecord } from './store.ts';

export const grantMessage = (record: GrantRecord): Grant => {
  const { _id, userId, email, clientId, createdAt, createdBy, expiresAt, revokedAt } = record;
  return { id: _id, userId, email, clientId, createdAt, createdBy, expiresAt, revokedAt: revokedAt ?? undefined };
};
