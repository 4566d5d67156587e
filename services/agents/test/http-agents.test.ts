import { newId } from 'platform/core/ids.ts';
import { operator, OPERATOR, serverToken } from 'platform/service/testing.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, until, type Agents } from './fixture.ts';
import { answerWith, startEndpoint, type Endpoint, type EndpointRequest } from './runtimes/network/endpoint.ts';
import { SECRET } from './runtimes/test-runtimes.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 'o').toString('base64')}`;

describe('an http agent', () => {
  let agents: Agents;
  let endpoint: Endpoint;
  let answer: (request: EndpointRequest) => unknown;
  beforeAll(async () => {
    endpoint = await startEndpoint((request, response) => {
      const value = answer(request);
      if (value !== undefined) answerWith(response, value);
    });
    agents = await startAgents({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
    await agents.operate('setSecret', { name: 'signing', value: SECRET, overlapSeconds: 0 });
    await agents.publish(
      definition('remote', {
        outputSchema: { type: 'number' },
        pricing: { base: 1, max: 10, perUnit: { calls: 2 } },
        limits: { wallMs: 20_000 },
      }),
    );
  });
  afterAll(async () => {
    await agents.service.stop();
    await endpoint.close();
  });
  beforeEach(() => endpoint.requests.splice(0));
  const definition = (name: string, more: object = {}) =>
    definitionOf(name, '', { runtime: { type: 'http', url: `${endpoint.url}/`, secretRef: 'signing' }, ...more });
  const idOf = ({ headers }: EndpointRequest) => headers['webhook-id'];

  it('runs, and is charged its calls beside the base price', async () => {
    answer = ({ body }) => ({ output: JSON.parse(body).args.n + 1 });
    const { output, agentExecutionId, creditsCharged } = await agents.run('remote', { n: 41 });
    expect([output, creditsCharged]).toEqual(['42', '3']);
    expect(JSON.parse(endpoint.requests[0]!.body)).toEqual({
      agent: 'remote',
      agentVersion: 1,
      agentExecutionId,
      organizationId: agents.organizationId,
      args: { n: 41 },
    });
    const { agentExecution } = await agents.call('getAgentExecution', { id: agentExecutionId });
    expect(JSON.parse(agentExecution!.usage!)).toEqual({ calls: 1 });
  });

  it('fails by an output that breaks its schema, and costs its calls only', async () => {
    answer = () => ({ output: 'a text' });
    await expect(agents.run('remote', {})).rejects.toMatchObject({
      reason: 'OUTPUT_INVALID',
      headers: { 'Credits-Charged': '2' },
    });
  });

  it('shows no secret in what is wrong with its output, also where that names its members', async () => {
    // A slash, as base64 may have it, is another character in a path.
    const secret = `whsec_${Buffer.alloc(32, '\xff\xfe\xfd', 'latin1').toString('base64')}`;
    expect(secret).toContain('/');
    await agents.operate('setSecret', { name: 'slashed', value: secret, overlapSeconds: 0 });
    const runtime = { type: 'http', url: `${endpoint.url}/`, secretRef: 'slashed' };
    await agents.publish(definition('telltale', { runtime, outputSchema: { additionalProperties: false } }));
    answer = () => ({ output: { [secret]: 1 } });
    const error = (await agents.run('telltale', {}).catch((failure: unknown) => failure)) as Error;
    expect(error).toMatchObject({ reason: 'OUTPUT_INVALID', message: expect.stringContaining('/[redacted]') });
    const { items } = await agents.call('listAgentExecutions', { agent: 'telltale' });
    const { agentExecution } = await agents.call('getAgentExecution', { id: items[0]!.id });
    for (const shown of [error.message, JSON.stringify(agentExecution)])
      expect(shown.replaceAll('~1', '/')).not.toContain(secret.slice(6, -1));
  });

  it('is known to its endpoint by the idempotency key, also when an interrupted run is repeated', async () => {
    answer = () => undefined;
    const interrupted = agents.run('remote', { n: 1 }, 'a-key').catch((error: { reason: string }) => error.reason);
    await until(() => endpoint.requests.length === 1);
    await agents.service.restart();
    expect(await interrupted).toBe('INTERNAL');
    answer = () => ({ output: 7 });
    expect((await agents.run('remote', { n: 1 }, 'a-key')).output).toBe('7');
    await agents.run('remote', { n: 1 }, 'other-key');
    await agents.run('remote', { n: 1 });
    const ids = endpoint.requests.map(idOf);
    expect(ids[1]).toBe(ids[0]);
    expect(new Set(ids).size).toBe(3);
    expect(ids.join()).not.toContain('key');
  });

  it('is known by another id in each organization, also for the same request with the same idempotency key', async () => {
    answer = () => ({ output: 7 });
    const { service } = agents;
    const other = newId();
    const asOperator = () => service.as(operator(other));
    const operators = service.client(AgentsServiceService, OPERATOR);
    await operators.setSecret({ name: 'signing', value: SECRET, overlapSeconds: 0 }, asOperator());
    await operators.applyAgent({ definition: JSON.stringify(definition('remote')) }, asOperator());
    await operators.publishAgent({ name: 'remote' }, asOperator());
    const request = { agentName: 'remote', args: '{"n":1}', idempotencyKey: 'the-same' };
    await agents.call('runAgent', request);
    await agents.call('runAgent', request, { principal: serverToken(other) });
    const ids = endpoint.requests.map(idOf);
    expect(new Set(ids).size).toBe(2);
  });

  it('is signed by the new and the old secret while they overlap', async () => {
    answer = () => ({ output: 7 });
    await agents.operate('setSecret', { name: 'signing', value: OTHER_SECRET, overlapSeconds: 3_600 });
    await agents.run('remote', {});
    await agents.operate('setSecret', { name: 'signing', value: SECRET, overlapSeconds: 0 });
    await agents.run('remote', {});
    expect(endpoint.requests.map(({ headers }) => String(headers['webhook-signature']).split(' ').length)).toEqual([
      2, 1,
    ]);
  });

  it('cannot be applied without its secret, or with prices of what is not measured', async () => {
    const apply = (given: object) => agents.operate('applyAgent', { definition: JSON.stringify(given) });
    const runtime = { type: 'http', url: `${endpoint.url}/`, secretRef: 'missing' };
    await expect(apply(definition('other', { runtime }))).rejects.toMatchObject({
      details: [{ path: '/runtime/secretRef', message: expect.stringContaining('there is no secret missing') }],
    });
    await expect(apply(definition('other', { pricing: { max: 9, perUnit: { steps: 1 } } }))).rejects.toMatchObject({
      details: [{ path: '/pricing/perUnit/steps', message: 'the runtime http measures calls' }],
    });
  });

  it('fails when its secret is deleted, and no call is sent', async () => {
    await agents.operate('deleteSecret', { name: 'signing' });
    await expect(agents.run('remote', {})).rejects.toMatchObject({ reason: 'AGENT_FAILED' });
    expect(endpoint.requests).toEqual([]);
  });
});
