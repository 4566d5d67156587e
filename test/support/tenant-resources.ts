import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import type { RunningStack } from './stack.ts';
import { expressionAgent, type Tenant } from './tenant.ts';

/** Ids, names and keys by which requests can name the resources of an organization. */
export interface TenantResources {
  typeId: string;
  type: string;
  objectId: string;
  key: string;
  agent: string;
  executionId: string;
  idempotencyKey: string;
  email: string;
  serverTokenId: string;
  serverTokenName: string;
  secretName: string;
}

/** Ids, names and keys of the same form that exist in no organization. */
export const unusedNames = (): TenantResources => ({
  typeId: newId(),
  type: `Type-${newId()}`,
  objectId: newId(),
  key: `key-${newId()}`,
  agent: `agent-${newId()}`,
  executionId: newId(),
  idempotencyKey: newId(),
  email: `${newId()}@example.com`,
  serverTokenId: newId(),
  serverTokenName: `token-${newId()}`,
  secretName: `secret-${newId()}`,
});

/** Creates one resource of each kind in the organization, under unused names. */
export async function createResources(stack: RunningStack, tenant: Tenant): Promise<TenantResources> {
  const { operator } = stack;
  const names = unusedNames();
  const { type, key, agent, idempotencyKey, email, serverTokenName, secretName } = names;
  const asOperator = () => operator.as(tenant.organizationId);
  const [agents, auth] = [operator.client(AgentsServiceService, 'agents'), operator.client(AuthServiceService, 'auth')];
  await agents.applyAgent({ definition: JSON.stringify(expressionAgent(agent, '{ "ran": $ }')) }, asOperator());
  await agents.publishAgent({ name: agent, version: undefined }, asOperator());
  await agents.setSecret({ name: secretName, value: 'hunter2', overlapSeconds: 0 }, asOperator());
  await auth.createUser({ email, name: 'Member', roles: ['admin'], groups: [] }, asOperator());
  const { serverToken } = await auth.createServerToken(
    { name: serverTokenName, expiresAt: undefined },
    await asAdministrator(stack, tenant),
  );
  const {
    body: { id: typeId },
  } = await tenant.request('POST', '/api/memory/types', { type, jsonSchema: {} });
  const {
    body: { id: objectId },
  } = await tenant.request('POST', '/api/memory/objects', { typeId, key, content: { a: 1 } });
  const {
    body: { agentExecutionId: executionId },
  } = await tenant.request(
    'POST',
    '/api/agent/run',
    { agentName: agent, args: {} },
    { 'Idempotency-Key': idempotencyKey },
  );
  return { ...names, typeId, objectId, executionId, serverTokenId: serverToken!.id };
}

/** gRPC call options that act as the organization's security administrator. */
export async function asAdministrator({ operator }: RunningStack, { administrator, organizationId }: Tenant) {
  const { principal } = await operator
    .client(AuthServiceService, 'auth')
    .assumeUser({ email: administrator }, operator.as(organizationId));
  return operator.asPrincipal(principal!);
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** Replaces ids and times by placeholders, also the ids within the names of resources. */
export const maskIdsAndTimes = (text: string): string => text.replace(UUID, '<id>').replace(TIME, '<time>');
