import { childrenOf, commandOf } from '../../../test/support/process-tree.ts';
import { definitionOf, startAgents, until, type Agents } from './fixture.ts';
import { say } from './runtimes/llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { SECRET } from './runtimes/test-runtimes.ts';

describe('a run that is under way when the service begins to drain', () => {
  let agents: Agents;
  let endpoint: Endpoint;
  /** Lets the endpoint answer what it holds. */
  let release: () => void;
  let held: Promise<void>;
  beforeAll(async () => {
    endpoint = await startEndpoint(async ({ body }, response) => {
      await held;
      if (body.includes('messages')) say(response, '{"n":7}');
      else answerWith(response, { output: { n: 7 } });
    });
    agents = await startAgents({ env: { AGENT_NETWORKS: '127.0.0.1/32', DRAIN_MS: '120000' } });
    await agents.operate('setSecret', { name: 'signing', value: SECRET, overlapSeconds: 0 });
    await agents.publish(definitionOf('expression', '{"n": 7}'));
    const source = 'const run = () => ({ n: 7 });';
    await agents.publish(withRuntime('script', { type: 'script', language: 'javascript', source }));
    await agents.publish(withRuntime('http', { type: 'http', url: `${endpoint.url}/`, secretRef: 'signing' }));
    const model = { url: endpoint.url, model: 'tested', prompt: 'Seven?', retries: 0 };
    await agents.publish({ ...withRuntime('llm', { type: 'llm', ...model }), outputSchema: { type: 'object' } });
  });
  afterAll(async () => {
    await agents.service.stop();
    await endpoint.close();
  });
  beforeEach(() => {
    ({ promise: held, resolve: release } = Promise.withResolvers<void>());
  });

  const withRuntime = (name: string, runtime: object) => ({ ...definitionOf(name, ''), runtime });
  const runners = () => childrenOf(process.pid).filter((pid) => commandOf(pid).includes('runner-child'));
  const signalRunners = (signal: NodeJS.Signals) => runners().forEach((pid) => process.kill(pid, signal));
  const isReserved = () => agents.credits.account.open === 1;
  const lastOf = async (agent: string) => (await agents.call('listAgentExecutions', { agent })).items[0];

  it.each(['expression', 'script'])('of the runtime %s ends, is charged and answered', async (agent) => {
    // A runner stands ready, which then does not begin before the drain has begun.
    await agents.run(agent, {});
    const { spent } = agents.credits.account;
    signalRunners('SIGSTOP');
    const running = agents.run(agent, {}, `key of ${agent}`);
    await until(isReserved);
    const restarted = agents.service.restart();
    signalRunners('SIGCONT');
    expect(await running).toMatchObject({ output: '{"n":7}', creditsCharged: '1' });
    await restarted;
    expect(await lastOf(agent)).toMatchObject({ status: 'succeeded' });
    expect(agents.credits.account).toMatchObject({ spent: spent + 1_000_000, open: 0, reserved: 0 });
  });

  it.each(['http', 'llm'])('of the runtime %s ends, is charged and answered', async (agent) => {
    const before = endpoint.requests.length;
    const running = agents.run(agent, {});
    await until(() => endpoint.requests.length > before);
    const restarted = agents.service.restart();
    release();
    expect(await running).toMatchObject({ output: '{"n":7}', creditsCharged: '1' });
    await restarted;
    expect(await lastOf(agent)).toMatchObject({ status: 'succeeded' });
    expect(agents.credits.account).toMatchObject({ open: 0, reserved: 0 });
  });

  it('ends and is charged also without its caller, who gets the answer later', async () => {
    const before = endpoint.requests.length;
    const aborter = new AbortController();
    const request = { agentName: 'http', args: '{}', idempotencyKey: 'left' };
    const left = agents.call('runAgent', request, { signal: aborter.signal });
    await until(() => endpoint.requests.length > before);
    aborter.abort();
    await expect(left).rejects.toMatchObject({ reason: 'CLIENT_GONE' });
    const restarted = agents.service.restart();
    release();
    await restarted;
    expect(await agents.call('runAgent', request)).toMatchObject({ output: '{"n":7}', idempotencyReplayed: 'true' });
    expect(endpoint.requests).toHaveLength(before + 1);
  });
});
