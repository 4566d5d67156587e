import type { KnownReason } from 'platform/core/errors.ts';
import type { MethodOptions } from 'platform/rpc/method-options.ts';
import type { Principal } from 'platform/core/principal.ts';
import type { Tier } from '../tiers.ts';

/**
 * Why a principal may not call a method; undefined if it may. The tier is checked first, then the kind, then the role.
 * @param options what the protos declare for the method; undefined for a method that they do not have
 */
export function denialReason(
  options: MethodOptions | undefined,
  principal: Pick<Principal, 'kind' | 'roles'>,
  tier: Tier,
): KnownReason | undefined {
  if (!options) return 'FORBIDDEN';
  if (options.capability !== '' && !tier.capabilities.includes(options.capability)) return 'TIER_REQUIRED';
  if (!options.principals.includes(principal.kind)) return 'FORBIDDEN';
  if (options.role === '' || rolesOf(principal).includes(options.role)) return undefined;
  return options.role === 'admin' ? 'ADMIN_REQUIRED' : 'FORBIDDEN';
}

/** A server token always has the role admin, and no other: the REST API promises that. */
export const rolesOf = ({ kind, roles }: Pick<Principal, 'kind' | 'roles'>): readonly string[] =>
  kind === 'SERVER_TOKEN' ? ['admin'] : roles;
