import { invalid } from 'platform/core/errors.ts';
import { requireName } from '../organizations/rules.ts';

/** Independent of each other: security_admin is not admin. A membership without any is a plain member. */
const ROLES = ['admin', 'security_admin'] as const;
export type Role = (typeof ROLES)[number];

const EMAIL = /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]{1,189}$/u;
const MAX_GROUPS = 100;

/** The address as it is stored and matched: lower case. @throws ServiceError INVALID_REQUEST */
export function requireEmail(email: string): string {
  if (!EMAIL.test(email)) throw invalid('/email', 'must be an email address');
  return email.toLowerCase();
}

/** Each once, in the order of ROLES. @throws ServiceError INVALID_REQUEST naming the unknown one */
export function requireRoles(roles: readonly string[]): Role[] {
  const unknown = roles.findIndex((role) => !ROLES.some((known) => known === role));
  if (unknown >= 0) throw invalid(`/roles/${unknown}`, `must be one of ${ROLES.join(', ')}`);
  return ROLES.filter((role) => roles.includes(role));
}

/** Each once, sorted. @throws ServiceError INVALID_REQUEST */
export function requireGroups(groups: readonly string[]): string[] {
  if (groups.length > MAX_GROUPS) throw invalid('/groups', `must be at most ${MAX_GROUPS}`);
  return [...new Set(groups.map((group, index) => requireName(`/groups/${index}`, group)))].sort();
}
