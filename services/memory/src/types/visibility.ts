import { isAdmin, type Principal } from 'platform/core/principal.ts';

/** `private`: admins and server tokens; `organization`: everyone of the organization. */
export type Visibility = 'organization' | 'private';

/** Part of every filter on types and fences, so that what a principal may not see is not found. */
export type Visible = { readonly visibility?: Visibility };
export const visibleTo = (principal: Principal): Visible => (isAdmin(principal) ? {} : { visibility: 'organization' });
