import { invalid } from 'platform/core/errors.ts';
import { requireName } from '../organizations/rules.ts';

/** Roles are independent: security_admin does not include admin. A membership may have none. */
const ROLES = ['admin', 'security_admin'] as const;
export type Role = (typeof ROLES)[number];

const EMAIL = /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]{1,189}$/u;
const MAX_GROUPS = 100;

/** The address in lower case, as it is stored and compared. @throws ServiceError INVALID_REQUEST */
export function requireEmail(email: string): string {
  if (!EMAIL.test(email)) throw invalid('/email', 'must be an email address');
  return email.toLowerCase();
}

/** Each role once, in the order of ROLES. @throws ServiceError INVALID_REQUEST at the first unknown role */
export function requireRoles(roles: readonly string[]): Role[] {
  const unknown = roles.findIndex((role) => !ROLES.some((known) => known === role));
  if (unknown >= 0) throw invalid(`/roles/${unknown}`, `must be one of ${ROLES.join(', ')}`);
  return ROLES.filter((role) => roles.includes(role));
}

/** Each group once, sorted. @throws ServiceError INVALID_REQUEST */
export function requireGroups(groups: readonly string[]): string[] {
  if (groups.length > MAX_GROUPS) throw invalid('/groups', `must have at most ${MAX_GROUPS} groups`);
  return [...new Set(groups.map((group, index) => requireName(`/groups/${index}`, group)))].sort();
}
