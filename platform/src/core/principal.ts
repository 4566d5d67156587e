import { strict as assert } from 'node:assert';
import { Principal, PrincipalKind } from 'proto/platform/v1/principal.ts';
import { ServiceError } from './errors.ts';

export { Principal, PrincipalKind };

/**
 * The organization that a call acts on. Asserts that there is one: the method options of a method that needs an
 * organization admit no principal without.
 */
export function organizationOf(principal: Principal): string {
  assert.ok(principal.organizationId, 'the principal has no organization');
  return principal.organizationId;
}

/** Every server token has admin rights, a user by the role "admin". */
export const isAdmin = (principal: Principal): boolean =>
  principal.kind === 'SERVER_TOKEN' || principal.roles.includes('admin');

/** Whether a server token has the scope; any other principal needs none. */
export const hasScope = ({ scopes }: Pick<Principal, 'scopes'>, scope: string): boolean =>
  scope === '' || scopes.length === 0 || scopes.includes(scope);

/** @throws ServiceError FORBIDDEN */
export function requireScope(principal: Pick<Principal, 'scopes'>, scope: string): void {
  if (!hasScope(principal, scope))
    throw new ServiceError('FORBIDDEN', `This server token does not have the scope ${scope}`);
}

/** @throws ServiceError TIER_LIMIT when `growth` more than `present` would exceed the tier's limit of this name */
export function requireWithinLimit(principal: Principal, limit: string, present: number, growth = 1): void {
  const max = principal.limits[limit];
  if (max === undefined || present + growth <= max) return;
  throw new ServiceError('TIER_LIMIT', `The licence tier allows at most ${max} ${limit.replaceAll('_', ' ')}`, {
    facts: { limit },
  });
}

/** The principal for calls that a service makes on its own behalf, for example in a job. */
export const servicePrincipal = (service: string, organizationId = ''): Principal => ({
  ...Principal.decode(new Uint8Array()),
  kind: 'SERVICE',
  organizationId,
  subject: service,
  name: service,
});

/** Ids of a principal for logs and traces. Of users there is none, and nobody's name: it may be an e-mail address. */
export const principalIds = ({
  kind,
  organizationId,
  subject,
}: Pick<Principal, 'kind' | 'organizationId' | 'subject'>): {
  organizationId?: string;
  tokenId?: string;
  agentExecutionId?: string;
} => ({
  ...(organizationId !== '' && { organizationId }),
  ...(kind === 'SERVER_TOKEN' && { tokenId: subject }),
  ...(kind === 'AGENT_EXECUTION' && { agentExecutionId: subject }),
});

/** Who made a change, as stored in events and records. */
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
