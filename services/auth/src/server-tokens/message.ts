import type { ServerToken } from 'proto/auth/v1/auth.ts';
import { SCOPES } from './scopes.ts';
import type { ServerTokenRecord } from './store.ts';

/** Leaves out the hash, which must not leave the store. */
export const serverTokenMessage = ({
  _id,
  name,
  hint,
  createdAt,
  createdBy,
  lastUsedAt,
  expiresAt,
  revokedAt,
  scopes = [...SCOPES],
  addressRanges = [],
  runsCancelled = false,
}: ServerTokenRecord): ServerToken => ({
  id: _id,
  name,
  hint,
  createdAt,
  createdBy,
  lastUsedAt: lastUsedAt ?? undefined,
  expiresAt: expiresAt ?? undefined,
  revokedAt: revokedAt ?? undefined,
  scopes,
  addressRanges,
  runsCancelled,
});
