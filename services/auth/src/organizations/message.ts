import type { Organization as OrganizationReply } from 'proto/auth/v1/auth.ts';
import type { Organization } from './store.ts';

export const organizationReply = ({
  _id,
  name,
  tier,
  state,
  createdAt,
  updatedAt,
}: Organization): OrganizationReply => ({ id: _id, name, tier, state, createdAt, updatedAt });
