import type { ServerResponse } from 'node:http';
import { definitionOf, startAgents, until, type Agents } from './fixture.ts';
import { chatOf, say } from './runtimes/llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint, type EndpointRequest } from './runtimes/network/endpoint.ts';

const API_KEY = 'sk-the-key-of-this-test';

describe('an llm agent', () => {
  let agents: Agents;
  let endpoint: Endpoint;
  let answer: (response: ServerResponse, request: EndpointRequest) => void;
  beforeAll(async () => {
    endpoint = await startEndpoint((request, response) => answer(response, request));
    agents = await startAgents({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
    await agents.operate('setSecret', { name: 'api-key', value: API_KEY, overlapSeconds: 0 });
    await agents.publish(definition('counts'));
  });
  afterAll(async () => {
    await agents.service.stop();
    await endpoint.close();
  });
  beforeEach(() => endpoint.requests.splice(0));
  const definition = (name: string, more: object = {}) =>
    definitionOf(name, '', {
      runtime: {
        type: 'llm',
        ...{ url: endpoint.url, model: 'tested', secretRef: 'api-key', prompt: 'Count {{args.what}}.', retries: 1 },
      },
      outputSchema: { type: 'object', required: ['total'], properties: { total: { type: 'integer' } } },
      pricing: { base: 1, max: 10, perUnit: { tokensIn: 0.01, tokensOut: 0.1 } },
      ...more,
    });
  const recordOf = async (id: string) => (await agents.call('getAgentExecution', { id })).agentExecution!;

  it('runs, and is charged its tokens beside the base price', async () => {
    answer = (response) => say(response, '{"total":7}');
    const { output, agentExecutionId, creditsCharged } = await agents.run('counts', { what: 'sheep' });
    expect([output, creditsCharged]).toEqual(['{"total":7}', '1.6']);
    expect(chatOf(endpoint.requests[0]!).messages).toEqual([{ role: 'user', content: 'Count sheep.' }]);
    const { usage } = await recordOf(agentExecutionId);
    expect(JSON.parse(usage!)).toEqual({ calls: 1, tokensIn: 10, tokensOut: 5 });
  });

  it('costs what its price allows at most, whatever its provider reports', async () => {
    answer = (response) =>
      say(response, '{"total":7}', { usage: { prompt_tokens: 900_000_000, completion_tokens: 900_000_000 } });
    expect((await agents.run('counts', {})).creditsCharged).toBe('10');
  });

  it('is asked once for one idempotency key', async () => {
    answer = (response) => say(response, `{"total":${endpoint.requests.length}}`);
    const [first, again] = [await agents.run('counts', {}, 'a-key'), await agents.run('counts', {}, 'a-key')];
    expect([first.output, again.output]).toEqual(['{"total":1}', '{"total":1}']);
    expect(endpoint.requests).toHaveLength(1);
  });

  it('that breaks its output schema twice fails, and costs the tokens of both answers only', async () => {
    answer = (response) => say(response, '{"total":"seven"}');
    await expect(agents.run('counts', {})).rejects.toMatchObject({
      reason: 'OUTPUT_INVALID',
      headers: { 'Credits-Charged': '1.2' },
    });
    expect(endpoint.requests).toHaveLength(2);
  });

  it('whose provider refuses fails free of charge, and nothing of the provider or the key is kept', async () => {
    answer = (response) => answerWith(response, { error: { message: `wrong key ${API_KEY}, says the provider` } }, 401);
    const error = await agents.run('counts', {}).catch((failure: unknown) => failure);
    expect(error).toMatchObject({
      reason: 'AGENT_FAILED',
      message: "The model's endpoint answered with status 401",
      headers: { 'Credits-Charged': '0' },
    });
    const { agentExecutionId } = (error as { facts: { agentExecutionId: string } }).facts;
    const record = JSON.stringify(await recordOf(agentExecutionId));
    expect(record).toContain('status 401');
    expect(record).not.toMatch(/sk-the|says the provider/);
  });

  it('that is cancelled has its call cut off, and costs the tokens that were sent', async () => {
    answer = () => undefined;
    const running = agents.run('counts', { what: 'x'.repeat(4_000) }).catch((error: unknown) => error);
    await until(() => endpoint.requests.length === 1);
    const { items } = await agents.call('listAgentExecutions', {});
    await agents.call('cancelAgentExecution', { id: items[0]!.id });
    expect(await running).toMatchObject({ reason: 'RUN_CANCELLED' });
    await until(() => endpoint.connections() === 0);
    const { usage, charge } = await recordOf(items[0]!.id);
    const { tokensIn } = JSON.parse(usage!) as { tokensIn: number };
    expect(tokensIn).toBeGreaterThan(1_000);
    expect(Number(charge)).toBeCloseTo(Math.min(10, tokensIn * 0.01), 6);
  });
});
