import type { KnownReason } from 'platform/core/errors.ts';
import type { MethodOptions } from 'platform/rpc/method-options.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { Tier } from '../tiers.ts';

/**
 * Why a principal may not call a method; undefined: it may. Tier before kind before role.
 * @param policy undefined for a method that this contract does not know
 */
export function refusalOf(
  policy: MethodOptions | undefined,
  principal: Pick<Principal, 'kind' | 'roles'>,
  tier: Tier,
): KnownReason | undefined {
  if (!policy) return 'FORBIDDEN';
  if (policy.capability !== '' && !tier.capabilities.includes(policy.capability)) return 'TIER_REQUIRED';
  if (!policy.principals.includes(principal.kind)) return 'FORBIDDEN';
  if (policy.role === '' || rolesOf(principal).includes(policy.role)) return undefined;
  return policy.role === 'admin' ? 'ADMIN_REQUIRED' : 'FORBIDDEN';
}

/** A server token has admin context by contract, and no other role. */
const rolesOf = ({ kind, roles }: Pick<Principal, 'kind' | 'roles'>): readonly string[] =>
  kind === 'SERVER_TOKEN' ? ['admin'] : roles;
