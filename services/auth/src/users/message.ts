import type { User } from 'proto/auth/v1/auth.ts';
import type { MembershipRecord } from './store.ts';

export const userMessage = ({ userId, email, name, roles, groups, createdAt }: MembershipRecord): User => ({
  id: userId,
  email,
  name,
  roles,
  groups,
  createdAt,
});
