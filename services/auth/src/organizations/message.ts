import type { Organization } from 'proto/auth/v1/auth.ts';
import type { OrganizationRecord } from './store.ts';

export const organizationMessage = ({
  _id,
  name,
  tier,
  state,
  createdAt,
  updatedAt,
}: OrganizationRecord): Organization => ({ id: _id, name, tier, state, createdAt, updatedAt });
