import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import type { Operator } from 'platform/rpc/operator.ts';
import { request, untilAvailable, type Reply } from './request.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** An organization that a test creates through the operator's gRPC calls, and its server token. */
export interface Tenant {
  organizationId: string;
  name: string;
  /** E-mail address of the user who created the token. */
  administrator: string;
  token: string;
  /** Sends the request; after 503 `unavailable` it waits for Retry-After and sends it again, as a client should. */
  request: Send;
  requestOnce: Send;
}
export interface TenantOptions {
  tier?: string;
  credits?: number;
  agents?: readonly object[];
}
type Send = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>;

/**
 * The tenant's requests go to the gateways in turn. When a stall loses the answer of a call, another organization is
 * created in its place.
 */
export async function makeTenant(
  operator: Operator,
  baseUrls: readonly string[],
  options: TenantOptions,
): Promise<Tenant> {
  const created = await retryWhileUnavailable(
    () => createTenant(operator, options),
    ['UNAVAILABLE', 'OUTCOME_UNKNOWN'],
  );
  const { token } = created;
  let turn = 0;
  const requestOnce: Send = (method, path, body, headers) =>
    request(baseUrls[turn++ % baseUrls.length] as string, method, path, { token, body, headers });
  return { ...created, requestOnce, request: (...args) => untilAvailable(() => requestOnce(...args)) };
}

async function createTenant(
  operator: Operator,
  { tier = 'enterprise', credits = 0, agents = [] }: TenantOptions,
): Promise<Omit<Tenant, 'request' | 'requestOnce'>> {
  const auth = operator.client(AuthServiceService, 'auth');
  const name = `tenant-${newId()}`;
  const administrator = `${newId()}@example.com`;
  const { organization } = await auth.createOrganization({ name, tier }, operator.as());
  const organizationId = organization?.id as string;
  await auth.createUser(
    { email: administrator, name: 'Administrator', roles: ['admin', 'security_admin'], groups: [] },
    operator.as(organizationId),
  );
  const { principal } = await auth.assumeUser({ email: administrator }, operator.as(organizationId));
  const { value: token } = await auth.createServerToken(
    { name: 'tests', expiresAt: undefined },
    operator.asPrincipal(principal as never),
  );
  if (credits > 0)
    await operator
      .client(CreditsServiceService, 'credits')
      .grant({ id: newId(), amountMicros: credits * 1_000_000, note: '' }, operator.as(organizationId));
  for (const definition of agents) {
    const { agent } = await operator
      .client(AgentsServiceService, 'agents')
      .applyAgent({ definition: JSON.stringify(definition) }, operator.as(organizationId));
    await operator
      .client(AgentsServiceService, 'agents')
      .publishAgent({ name: agent?.name as string, version: undefined }, operator.as(organizationId));
  }
  return { organizationId, name, administrator, token };
}

/** The definition of an agent on the expression runtime; it costs one credit a run. */
export const expressionAgent = (name: string, source: string, given: object = {}): object => ({
  apiVersion: 'agents/v1',
  kind: 'FunctionalAgent',
  name,
  argumentsSchema: {},
  runtime: { type: 'expression', language: 'jsonata', source },
  pricing: { base: 1, max: 1 },
  ...given,
});
