import { strict as assert } from 'node:assert';
import { Principal, PrincipalKind } from 'proto/platform/v1/principal.ts';
import { ServiceError } from './errors.ts';

export { Principal, PrincipalKind };

/** The organization that a call acts on. Asserts: a method that needs one is never opened to a principal without. */
export function organizationOf(principal: Principal): string {
  assert.ok(principal.organizationId, 'the principal has no organization');
  return principal.organizationId;
}

/** Admin context: a server token has it by contract, a user by role. */
export const isAdmin = (principal: Principal): boolean =>
  principal.kind === 'SERVER_TOKEN' || principal.roles.includes('admin');

/** @throws ServiceError TIER_LIMIT when one more than `present` is over the tier's cap of that name */
export function requireWithinLimit(principal: Principal, limit: string, present: number): void {
  const cap = principal.limits[limit];
  if (cap === undefined || present < cap) return;
  throw new ServiceError('TIER_LIMIT', `The licence tier allows at most ${cap} ${limit.replaceAll('_', ' ')}`, {
    facts: { limit },
  });
}

/** The principal of a service's own job. */
export const servicePrincipal = (service: string, organizationId = ''): Principal => ({
  ...Principal.decode(new Uint8Array()),
  kind: 'SERVICE',
  organizationId,
  subject: service,
  name: service,
});

/** Who did it, as events and records carry it. */
export interface Actor {
  kind: string;
  id: string;
  name: string;
  via: string;
}
export const actorOf = (principal: Principal): Actor => ({
  kind: principal.kind.toLowerCase(),
  id: principal.subject,
  name: principal.name,
  via: principal.via,
});
