import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { eventually } from 'platform/service/test-end.ts';
import { say } from '../../services/agents/test/runtimes/llm/model-server.ts';
import {
  answerWith,
  startEndpoint,
  type Endpoint,
  type EndpointRequest,
} from '../../services/agents/test/runtimes/network/endpoint.ts';
import { SECRET } from '../../services/agents/test/runtimes/test-runtimes.ts';
import { SHORT_LEASES } from '../support/load-settings.ts';
import { request, untilAvailable } from '../support/request.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const TYPES = ['script', 'http', 'llm'];
const LONG_MS = 600_000;

describe('kill -9 of agents during runs of a script, an endpoint and a model, each with an idempotency key', () => {
  let stack: Stack;
  let gateway: StackProcess;
  let tenant: Tenant;
  let endpoint: Endpoint;
  let answers = false;
  beforeAll(async () => {
    endpoint = await startEndpoint(({ path }, response) => {
      if (!answers) return;
      if (path === '/http') answerWith(response, { output: 'done' });
      else say(response, 'done');
    });
    stack = await startStack({ env: { ...SHORT_LEASES, AGENT_NETWORKS: '127.0.0.1/32' } });
    gateway = await startGatewayToFirstAgents(stack);
    tenant = await stack.tenant({ credits: 100 });
    const as = () => stack.operator.as(tenant.organizationId);
    await agents().setSecret({ name: 'signing', value: SECRET, overlapSeconds: 0 }, as());
  });
  afterAll(async () => {
    gateway.child.kill('SIGTERM');
    await stack.stop();
    await endpoint.close();
  });

  const agents = () => stack.operator.client(AgentsServiceService, 'agents');
  async function publish(type: string, runtime: object): Promise<void> {
    const definition = JSON.stringify({
      ...expressionAgent(type, ''),
      ...{ runtime: { type, ...runtime }, pricing: { base: 2 } },
      limits: { wallMs: 300_000, maxSteps: 1_000_000_000 },
    });
    await agents().applyAgent({ definition }, stack.operator.as(tenant.organizationId));
    await agents().publishAgent({ name: type, version: undefined }, stack.operator.as(tenant.organizationId));
  }
  const script = (body: string) => ({ language: 'javascript', source: `function run() { ${body} }` });
  const run = (agentName: string) =>
    request(`http://${gateway.address}`, 'POST', '/api/agent/run', {
      ...{ token: tenant.token, body: { agentName, args: {} } },
      headers: { 'Idempotency-Key': `key of ${agentName}` },
    });
  const executions = async (status: string): Promise<{ agent: string; charge: number }[]> =>
    (await tenant.request('GET', `/api/agent/executions?status=${status}`)).body.items;

  it(
    'interrupts them free of charge and closes their connections; a repeat runs once, under the same id outside',
    async () => {
      await publish('script', script('for (;;);'));
      await publish('http', { url: `${endpoint.url}/http`, secretRef: 'signing' });
      await publish('llm', { url: endpoint.url, model: 'tested', prompt: 'Are you done?' });
      const first = Promise.all(TYPES.map(run));
      await eventually(async () => (await executions('running')).length === 3);
      await eventually(() => endpoint.requests.length === 2);
      await stack.killAndAwait('agents');
      expect((await first).map(({ status, body }) => [status, body.code])).toEqual(
        TYPES.map(() => [504, 'outcome_unknown']),
      );
      await eventually(() => endpoint.connections() === 0);
      await eventually(async () => {
        await stack.runJob('agents', 'reaper');
        return (await executions('interrupted')).length === 3;
      });
      expect((await executions('interrupted')).map(({ charge }) => charge)).toEqual([0, 0, 0]);

      answers = true;
      await publish('script', script('return "done";'));
      const repeated = await Promise.all(TYPES.map((type) => untilAvailable(() => run(type))));
      expect(
        repeated.map(({ status, body, headers }) => [status, body.output, headers.get('idempotency-replayed')]),
      ).toEqual(TYPES.map(() => [200, 'done', null]));
      const again = await Promise.all(TYPES.map((type) => untilAvailable(() => run(type))));
      expect(again.map(({ body, headers }) => [body, headers.get('idempotency-replayed')])).toEqual(
        repeated.map(({ body }) => [body, 'true']),
      );
      const idOf = ({ headers }: EndpointRequest) => headers['webhook-id'];
      const calls = endpoint.requests.filter(({ path }) => path === '/http').map(idOf);
      expect(calls).toEqual([expect.any(String), calls[0]]);

      await stack.runJob('credits', 'sweeper');
      const { account } = await stack.operator
        .client(CreditsServiceService, 'credits')
        .getBalance({}, stack.operator.as(tenant.organizationId));
      expect(account).toMatchObject({ spentMicros: 6e6, reservedMicros: 0, openReservations: 0 });
    },
    LONG_MS,
  );
});
