import type { WhoAmIRequest, WhoAmIResponse } from 'proto/auth/v1/auth.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { rolesOf } from './access.ts';
import type { Deps } from '../deps.ts';
import { tierOf } from '../tiers.ts';

/** Credits may take this long; the rest of the answer does not wait for more. */
const CREDITS_MS = 1_500;

export async function whoAmI(
  { organizations, credits }: Pick<Deps, 'organizations' | 'credits'>,
  { rates }: WhoAmIRequest,
  context: CallContext,
): Promise<WhoAmIResponse> {
  const { principal, requestId, signal } = context;
  const { kind, subject, name, groups } = principal;
  const deadline = Date.now() + CREDITS_MS;
  const [organization, balance] = await Promise.all([
    organizations.byId(organizationOfCall(context)),
    credits.getBalance({}, { principal, requestId, signal, deadline }).catch(undefinedIfDown),
  ]);
  if (!organization) throw new ServiceError('NOT_FOUND');
  const { capabilities, limits } = tierOf(organization.tier);
  return {
    kind: kind.toLowerCase(),
    id: subject,
    name,
    organization: { id: organization._id, name: organization.name },
    roles: [...rolesOf(principal)],
    groups,
    tier: organization.tier,
    capabilities: [...capabilities],
    limits: JSON.stringify(limits),
    credits: balance && (balance.account?.availableMicros ?? 0) / 1e6,
    rates,
  };
}

function undefinedIfDown(error: unknown): undefined {
  const isDown = error instanceof ServiceError && ['UNAVAILABLE', 'OUTCOME_UNKNOWN'].includes(error.reason);
  if (!isDown) throw error;
}
