import type { ListTiersRequest, ListTiersResponse } from 'proto/auth/v1/auth.ts';
import { TIERS } from '../tiers.ts';

export async function listTiers(_deps: object, _request: ListTiersRequest): Promise<ListTiersResponse> {
  const tiers = Array.from(TIERS, ([name, { capabilities, limits }]) => ({
    name,
    capabilities: [...capabilities],
    limits: { ...limits },
  }));
  return Promise.resolve({ tiers });
}
