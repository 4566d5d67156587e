import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { CallOptions, ServiceDefinition } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import {
  asAdministrator,
  createResources,
  maskIdsAndTimes,
  unusedNames,
  type TenantResources,
} from '../support/tenant-resources.ts';
import { ROUTES } from '../support/routes.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

type Requests = (theirs: TenantResources, mine: TenantResources) => object[];

/**
 * Requests of operators and administrators that name resources of another organization, by RPC. The first request must
 * get another reply on behalf of the owner.
 */
const CASES: Record<string, Requests> = {
  'agents.ApplyAgent': ({ agent }) => [{ definition: JSON.stringify(expressionAgent(agent, '{ "ran": $ }')) }],
  'agents.PublishAgent': ({ agent }) => [{ name: agent }, { name: agent, version: 1 }],
  'agents.RetireAgent': ({ agent }) => [{ name: agent }],
  'agents.ListAgentVersions': ({ agent }) => [{ name: agent }],
  'agents.GetAgentVersion': ({ agent }) => [{ name: agent }, { name: agent, version: 1 }],
  'agents.DeleteSecret': ({ secretName }) => [{ name: secretName }],
  'auth.SetUserRoles': ({ email }) => [{ email, roles: [] }],
  'auth.SetUserGroups': ({ email }) => [{ email, groups: ['g'] }],
  'auth.RemoveUser': ({ email }) => [{ email }],
  'auth.AssumeUser': ({ email }) => [{ email }],
  'auth.IssueJwt': ({ email }) => [{ email }],
  'auth.CreateServerToken': ({ serverTokenName }) => [{ name: serverTokenName }],
  'auth.RotateServerToken': ({ serverTokenName }) => [{ idOrName: serverTokenName, overlapSeconds: 60 }],
  'auth.RevokeServerToken': ({ serverTokenId, serverTokenName }) => [
    { idOrName: serverTokenId },
    { idOrName: serverTokenName },
  ],
};
/** RPCs that list what the organization has; their requests name no resource except where a page begins. */
const LISTS: Record<string, object> = {
  'agents.ListAgents': {},
  'agents.ListSecrets': {},
  'auth.ListUsers': { pageSize: 100, afterEmail: '' },
  'auth.ListGrants': { pageSize: 100, afterId: '' },
  'auth.ListServerTokens': { pageSize: 100, afterId: '' },
  'auth.ListAuditEntries': { pageSize: 100, beforeId: '', action: '' },
  'auth.VerifyAuditTrail': { pageSize: 100 },
  'auth.ExportAuditEntries': { pageSize: 100, afterSequence: 0, afterId: '' },
  'credits.ListLedgerRows': { pageSize: 100, beforeSequence: 0 },
  'credits.GetBalance': {},
};
/** RPCs of the platform, about organizations themselves, or that only services call. */
const ELSEWHERE = [
  'auth.CreateOrganization',
  'auth.ListOrganizations',
  'auth.GetOrganization',
  'auth.DeactivateOrganization',
  'auth.ActivateOrganization',
  'auth.SetOrganizationTier',
  'auth.ListTiers',
  'platform.Diagnose',
  'platform.ListJobs',
  'platform.RunJob',
  'agents.UseCallbackToken',
  'auth.Authenticate',
  'auth.ShareRates',
  'auth.FindStoppedActors',
  'auth.RecordDenials',
  'auth.GetJwks',
  'auth.RotateSigningKey',
  'credits.Reserve',
  'credits.Extend',
  'credits.Settle',
  'credits.Release',
  // its request names no resource, and the embedded ledger rejects it
  'credits.RebuildLedger',
  // services/auth/test/revoke-grant.test.ts
  'auth.RevokeGrant',
  // have tests of their own below
  'auth.CreateUser',
  'credits.Grant',
  'agents.SetSecret',
];
const DEFINITIONS: Record<string, ServiceDefinition> = {
  agents: AgentsServiceService,
  auth: AuthServiceService,
  credits: CreditsServiceService,
};

let stack: RunningStack;
let stranger: Tenant;
let owner: Tenant;
let mine: TenantResources;
beforeAll(async () => {
  stack = await sharedStack();
  [stranger, owner] = await Promise.all([stack.tenant({ credits: 100 }), stack.tenant({ credits: 100 })]);
  mine = await createResources(stack, stranger);
});

const nameOf = (path: string): string => path.replace(/^\/(\w+)\.v1\.\w+\/(\w+)$/, '$1.$2');

/** Calls the RPC on behalf of the tenant. @returns the reply or the whole error, as text */
async function call(rpc: string, tenant: Tenant, request: object): Promise<{ text: string; failed: boolean }> {
  const [process, name] = rpc.split('.') as [ProcessName, string];
  const policy = [...allMethodOptions()].find(([path]) => nameOf(path) === rpc)![1];
  const options: CallOptions = policy.principals.includes('OPERATOR')
    ? stack.operator.as(tenant.organizationId)
    : await asAdministrator(stack, tenant);
  const client = stack.operator.client<ServiceDefinition>(DEFINITIONS[process]!, process);
  const method = `${name[0]!.toLowerCase()}${name.slice(1)}`;
  try {
    return {
      text: JSON.stringify(
        await (client[method] as (request: object, options: CallOptions) => Promise<object>)(request, options),
      ),
      failed: false,
    };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { reason, message, details, facts, headers } = error;
    return { text: JSON.stringify({ reason, message, details, facts, headers }), failed: true };
  }
}
// the value of a token is random
const withoutToken = (text: string): string => maskIdsAndTimes(text).replace(/aks_\w+/g, '<token>');

it('has a case for every RPC without a route', () => {
  const routed = new Set(ROUTES.map(({ method }) => method.path));
  const rest = [...allMethodOptions().keys()].filter((path) => !routed.has(path)).map(nameOf);
  expect([...Object.keys(CASES), ...Object.keys(LISTS), ...ELSEWHERE].sort()).toEqual(rest.sort());
});

it.each(Object.entries(CASES))(
  "%s gives the same reply for another organization's resource as for one that does not exist",
  async (rpc, requestsOf) => {
    const [theirs, none] = [await createResources(stack, owner), unusedNames()];
    const [foreign, random] = [requestsOf(theirs, mine), requestsOf(none, mine)];
    for (const [index, request] of foreign.entries()) {
      const [existing, unknown] = [await call(rpc, stranger, request), await call(rpc, stranger, random[index]!)];
      if (existing.failed)
        expect([existing.text, Object.values(theirs).filter((value) => existing.text.includes(value))]).toEqual([
          unknown.text,
          [],
        ]);
      else expect(withoutToken(existing.text)).toBe(withoutToken(unknown.text));
    }
    // the requests name real resources, which the owner still has
    const [owners, strangers] = [
      await call(rpc, owner, foreign[0]!),
      await call(rpc, stranger, requestsOf(unusedNames(), mine)[0]!),
    ];
    expect(withoutToken(owners.text)).not.toBe(withoutToken(strangers.text));
    expect((await owner.request('POST', '/api/agent/run', { agentName: theirs.agent, args: {} })).status).toBe(
      rpc === 'agents.RetireAgent' ? 404 : 200,
    );
  },
);

it.each(Object.entries(LISTS))("%s shows only the organization's own data", async (rpc, request) => {
  const theirs = await createResources(stack, owner);
  const { text, failed } = await call(rpc, stranger, request);
  expect([
    failed,
    [...Object.values(theirs), owner.organizationId, owner.administrator].filter((value) => text.includes(value)),
  ]).toEqual([false, []]);
});

it("credits.Grant: the id of another organization's grant is free in this one, also with another amount", async () => {
  const [here, there] = await Promise.all([stack.tenant(), stack.tenant()]);
  const id = newId();
  const credits = stack.operator.client(CreditsServiceService, 'credits');
  await credits.grant({ id, amountMicros: 5, note: '' }, stack.operator.as(there.organizationId));
  const { account } = await credits.grant({ id, amountMicros: 7, note: '' }, stack.operator.as(here.organizationId));
  expect([account?.availableMicros, account?.sequence]).toEqual([7, 1]);
});

it('auth.CreateUser: a user of another organization joins with only the given roles', async () => {
  const { email } = await createResources(stack, owner);
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const { user } = await auth.createUser(
    { email, name: 'New', roles: [], groups: ['here'] },
    stack.operator.as(stranger.organizationId),
  );
  const { users } = await auth.listUsers({ pageSize: 100, afterEmail: '' }, stack.operator.as(owner.organizationId));
  expect([user, users.find((known) => known.email === email)]).toMatchObject([
    { email, roles: [], groups: ['here'] },
    { email, roles: ['admin'], groups: [] },
  ]);
});
