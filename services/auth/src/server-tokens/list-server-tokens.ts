import type { ListServerTokensRequest, ListServerTokensResponse } from 'proto/auth/v1/auth.ts';
import { isoTime } from 'platform/core/clock.ts';
import { invalid } from 'platform/core/errors.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { requireSecurityAdmin } from './authority.ts';
import { serverTokenMessage } from './message.ts';
import { isExpired, type ServerTokenRecord } from './store.ts';

type Needs = Pick<Deps, 'clock' | 'organizations' | 'users' | 'serverTokens'>;

/**
 * Newest first, with the revoked ones, or only live ones that are unused for a time.
 * @throws ServiceError FORBIDDEN, INVALID_REQUEST
 */
export async function listServerTokens(
  deps: Needs,
  { afterId, pageSize, unusedForSeconds = 0 }: ListServerTokensRequest,
  context: CallContext,
): Promise<ListServerTokensResponse> {
  const { organization } = await requireSecurityAdmin(deps, context);
  const size = requirePageSize(pageSize || undefined, PAGE_SIZES);
  if (unusedForSeconds < 0) throw invalid('/unusedForSeconds', 'unusedForSeconds must not be negative');
  const nowMs = deps.clock.now();
  const isWanted =
    unusedForSeconds === 0 ? () => true : isUnused(isoTime(nowMs), isoTime(nowMs - unusedForSeconds * 1_000));
  const found: ServerTokenRecord[] = [];
  for (let after = afterId; found.length < size;) {
    const tokens = await deps.serverTokens.list(organization._id, after, size);
    found.push(...tokens.filter(isWanted));
    const last = tokens.at(-1);
    if (!last || tokens.length < size) break;
    after = last._id;
  }
  return { serverTokens: found.slice(0, size).map(serverTokenMessage) };
}

/** Whether a token is live, and neither was created nor used after `since`. */
const isUnused =
  (now: string, since: string) =>
  (token: ServerTokenRecord): boolean =>
    token.revokedAt === null && !isExpired(token, now) && (token.lastUsedAt ?? token.createdAt) <= since;
