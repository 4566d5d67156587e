import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { asAdministrator } from '../support/tenant-resources.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

/** Calls of the endpoint, which writes by the token of the run for as long as it may, and never answers. */
interface Call {
  organizationId: string;
  /** Statuses of its writes. */
  statuses: number[];
  /** The service has ended the call. */
  isOver: boolean;
}
const calls: Call[] = [];
let endpoint: Server;
let stack: Stack;
beforeAll(async () => {
  endpoint = createServer((received, response) => {
    let text = '';
    received.on('data', (part) => (text += String(part)));
    received.on('end', () => {
      const { args, callback } = JSON.parse(text) as { args: { of: string }; callback: { token: string } };
      const call: Call = { organizationId: args.of, statuses: [], isOver: false };
      calls.push(call);
      response.on('close', () => (call.isOver = true));
      void write(call, callback.token);
    });
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  stack = await startStack({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
});
afterAll(async () => {
  await stack.stop();
  endpoint.closeAllConnections();
  await new Promise((resolve) => endpoint.close(resolve));
});

async function write(call: Call, token: string): Promise<void> {
  for (let status = 201; [201, 503].includes(status); call.statuses.push(status)) {
    const body = { type: 'Note', key: newId(), content: {} };
    ({ status } = await request(stack.baseUrl, 'POST', '/api/memory/objects', { token, body }));
    await new Promise(setImmediate);
  }
}

/** Two runs, at different gateways, of an organization of its own; their endpoint writes. */
async function writingRuns(): Promise<{
  tenant: Tenant;
  runs: Promise<{ status: number; code: string }>[];
  mine: Call[];
}> {
  const tenant = await stack.tenant({ credits: 100, agents: [expressionAgent('other', '1')] });
  const of = tenant.organizationId;
  const as = stack.operator.as(of);
  const agents = stack.operator.client(AgentsServiceService, 'agents');
  await agents.setSecret(
    { name: 's', value: `whsec_${Buffer.alloc(32, 'k').toString('base64')}`, overlapSeconds: 0 },
    as,
  );
  const { port } = endpoint.address() as AddressInfo;
  const definition = {
    ...{ apiVersion: 'agents/v1', kind: 'FunctionalAgent', name: 'writer', argumentsSchema: {} },
    runtime: { type: 'http', url: `http://127.0.0.1:${port}/`, secretRef: 's', retries: 0 },
    tools: { memory: { types: ['Note'], access: 'write' } },
    limits: { wallMs: 300_000, maxToolCalls: 1_000 },
  };
  await agents.applyAgent({ definition: JSON.stringify(definition) }, as);
  await agents.publishAgent({ name: 'writer', version: undefined }, as);
  expect((await tenant.request('POST', '/api/memory/types', { type: 'Note', jsonSchema: {} })).status).toBe(201);
  const runs = [0, 1].map((n) =>
    tenant
      .requestOnce('POST', '/api/agent/run', { agentName: 'writer', args: { of, n } })
      .then(({ status, body }) => ({ status, code: body.code as string })),
  );
  const mine = () => calls.filter(({ organizationId }) => organizationId === of);
  await eventually(() => mine().length === 2 && mine().every(({ statuses }) => statuses.length > 0));
  return { tenant, runs, mine: mine() };
}
const CANCELLED = { status: 500, code: 'run_cancelled' };
/** They were refused in the end, and not because their token was used up. */
const wereStopped = (mine: readonly Call[]): boolean => mine.every(({ statuses }) => statuses.at(-1) === 401);

it('the deactivation of an organization ends its runs and their tools, whichever replica has them', async () => {
  const { tenant, runs, mine } = await writingRuns();
  const auth = stack.operator.client(AuthServiceService, 'auth');
  await auth.deactivateOrganization({ id: tenant.organizationId }, stack.operator.as());
  expect(await Promise.all(runs)).toEqual([CANCELLED, CANCELLED]);
  await eventually(() => mine.every(({ isOver }) => isOver) && wereStopped(mine));
});

it('so does the revocation of their token with its runs, and one without them does not', async () => {
  const { tenant, runs, mine } = await writingRuns();
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const revoke = async (cancelRuns: boolean) =>
    auth.revokeServerToken({ idOrName, cancelRuns }, await asAdministrator(stack, tenant));
  const { serverTokens } = await auth.listServerTokens(
    { pageSize: 10, afterId: '', unusedForSeconds: 0 },
    await asAdministrator(stack, tenant),
  );
  const idOrName = serverTokens[0]!.id;
  await revoke(false);
  const before = mine.map(({ statuses }) => statuses.length);
  await eventually(() => mine.every(({ statuses }, n) => statuses.length > before[n]! + 5));
  expect(mine.some(({ isOver }) => isOver)).toBe(false);
  await revoke(true);
  expect(await Promise.all(runs)).toEqual([CANCELLED, CANCELLED]);
  await eventually(() => mine.every(({ isOver }) => isOver) && wereStopped(mine));
});
