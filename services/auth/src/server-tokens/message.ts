import type { ServerToken as ServerTokenReply } from 'proto/auth/v1/auth.ts';
import type { ServerToken } from './store.ts';

/** Never the hash. */
export const serverTokenReply = ({
  _id,
  name,
  hint,
  createdAt,
  createdBy,
  lastUsedAt,
  expiresAt,
  revokedAt,
}: ServerToken): ServerTokenReply => ({
  id: _id,
  name,
  hint,
  createdAt,
  createdBy,
  lastUsedAt: lastUsedAt ?? undefined,
  expiresAt: expiresAt ?? undefined,
  revokedAt: revokedAt ?? undefined,
});
