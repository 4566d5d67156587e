import type { PlatformStore } from 'platform/store/store.ts';
import { GRANTS, type GrantRecord } from '../grants/store.ts';
import { MEMBERSHIPS, type MembershipRecord } from '../users/store.ts';

/** Finds what JWTs name, across organizations: one read each for any number, and none for none. */
export const openJwtLookup = (platformStore: PlatformStore) => ({
  grants: async (ids: readonly string[]): Promise<GrantRecord[]> =>
    ids.length === 0 ? [] : platformStore.find(GRANTS, { _id: { in: ids } }),
  memberships: async (userIds: readonly string[]): Promise<MembershipRecord[]> =>
    userIds.length === 0 ? [] : platformStore.find(MEMBERSHIPS, { userId: { in: userIds } }),
});
export type JwtLookup = ReturnType<typeof openJwtLookup>;
