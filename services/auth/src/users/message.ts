import type { User as UserReply } from 'proto/auth/v1/auth.ts';
import type { Membership } from './store.ts';

export const userReply = ({ userId, email, name, roles, groups, createdAt }: Membership): UserReply => ({
  id: userId,
  email,
  name,
  roles,
  groups,
  createdAt,
});
