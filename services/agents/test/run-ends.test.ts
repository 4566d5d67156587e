import { cancelAgentExecution } from '../src/executions/cancel-agent-execution.ts';
import { runAgent } from '../src/executions/run-agent.ts';
import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';
import { startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { SECRET } from './runtimes/test-runtimes.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';

const LONG = { wallMs: 300_000, maxSteps: 1_000_000_000 };
/** Credits for each unit, by runtime. */
const PRICES: Record<string, Record<string, number>> = {
  expression: { steps: 0.000001, cpuMs: 0.001 },
  script: { steps: 0.000001, cpuMs: 0.001 },
  http: { calls: 2 },
  llm: { calls: 2, tokensIn: 0.01, tokensOut: 0.1 },
};
const TYPES = Object.keys(PRICES);

let endpoint: Endpoint;
beforeAll(async () => {
  endpoint = await startEndpoint(() => undefined);
});
afterAll(() => endpoint.close());
beforeEach(() => endpoint.requests.splice(0));

/** Runs of it never end by themselves. */
const endless = (type: string): Record<string, unknown> => {
  const runtimes: Record<string, object> = {
    expression: { language: 'jsonata', source: ENDLESS },
    script: { language: 'javascript', source: 'function run() { for (;;); }' },
    http: { url: `${endpoint.url}/`, secretRef: 'signing' },
    llm: { url: endpoint.url, model: 'tested', prompt: 'Do you ever answer?' },
  };
  return { runtime: { type, ...runtimes[type] } };
};

describe.each(TYPES)('a run of the runtime %s that is stopped', (type) => {
  let simulation: Simulation;
  beforeAll(async () => {
    simulation = await simulateProcesses({ leaseMs: 2_000, granted: 10_000 });
    const pricing = { base: 30, max: 1_000, perUnit: PRICES[type] };
    await simulation.publish(definitionOf('endless', '', { ...endless(type), limits: LONG, pricing }));
    await simulation.publish(
      definitionOf('timed', '', { ...endless(type), limits: { ...LONG, wallMs: 500 }, pricing }),
    );
    await simulation.publish(definitionOf('quick', '1', { pricing: { base: 0 } }));
  });
  afterAll(() => simulation.close());

  const WAYS: Record<string, { agent: string; end: string; stop(id: string, client: AbortController): unknown }> = {
    'because its client is gone': { agent: 'endless', end: 'cancelled', stop: (_id, client) => client.abort() },
    'by a request to its own process': {
      ...{ agent: 'endless', end: 'cancelled' },
      stop: (id) => cancelAgentExecution(simulation.healthy, { id }, simulation.context()),
    },
    'by a request to another process': {
      ...{ agent: 'endless', end: 'cancelled' },
      stop: (id) => cancelAgentExecution(simulation.process(), { id }, simulation.context()),
    },
    'at its limit of time': { agent: 'timed', end: 'timed_out', stop: () => undefined },
  };

  it.each(Object.keys(WAYS))('%s: what it uses ends with it, and it costs what it has used', async (way) => {
    const { agent, end, stop } = WAYS[way]!;
    const earlier = new Set((await simulation.records()).map(({ _id }) => _id));
    const { spent } = simulation.account;
    const record = async () => (await simulation.records()).find(({ _id }) => !earlier.has(_id));
    const client = new AbortController();
    const running = runAgent(simulation.healthy, { agentName: agent, args: '{}' }, simulation.context(client.signal));
    const failure = running.then(String, ({ reason }: { reason: string }) => reason);
    await until(async () => (await record())?.status !== undefined && (await record())!.status !== 'queued');
    await stop((await record())!._id, client);
    expect(await failure).toBe(end === 'timed_out' ? 'RUN_TIMEOUT' : 'RUN_CANCELLED');

    const { status, usage, chargeMicros } = (await record())!;
    expect([status, Object.keys(usage!)]).toEqual([end, Object.keys(PRICES[type]!)]);
    const used = Object.entries(usage!).map(([unit, n]) => n * Math.round(PRICES[type]![unit]! * 1e6));
    expect(chargeMicros).toBe(used.reduce((sum, micros) => sum + micros, 0));
    expect(chargeMicros).toBeGreaterThan(0);
    expect(simulation.account).toMatchObject({ spent: spent + chargeMicros!, reserved: 0, open: 0 });

    // The only runner is free, and no connection is left.
    expect(await simulation.run(simulation.healthy, 'quick')).toMatchObject({ success: true });
    await until(() => endpoint.connections() === 0);
  });
});

describe('runs that wait on the network', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
    await agents.operate('setSecret', { name: 'signing', value: SECRET, overlapSeconds: 0 });
    const free = { pricing: { base: 0 }, limits: LONG };
    for (const type of ['http', 'llm']) await agents.publish(definitionOf(type, '', { ...endless(type), ...free }));
    await agents.publish(definitionOf('quick', '1', free));
  });
  afterAll(() => agents.service.stop());

  it('hold no runner, and count among the twenty of their organization, although they are free', async () => {
    const clients = new AbortController();
    const waiting: Promise<unknown>[] = [];
    const wait = (agentName: string) =>
      waiting.push(
        agents
          .call('runAgent', { agentName, args: '{}' }, { signal: clients.signal })
          .catch(({ reason }: { reason: string }) => reason),
      );
    for (let n = 0; n < 19; n++) wait(n % 2 === 0 ? 'http' : 'llm');
    await until(() => endpoint.requests.length === 19);
    expect(await agents.run('quick', {}, 'a-key')).toMatchObject({ success: true, creditsCharged: '0' });
    wait('llm');
    await until(() => endpoint.requests.length === 20);
    await expect(agents.run('quick', {}, 'another-key')).rejects.toMatchObject({
      reason: 'TOO_MANY_RUNS',
      headers: { 'Retry-After': '1' },
    });
    expect(await agents.run('quick', {}, 'a-key')).toMatchObject({ idempotencyReplayed: 'true' });
    clients.abort();
    await Promise.all(waiting);
    await until(() => agents.credits.account.open === 0 && endpoint.connections() === 0);
    const { idempotencyReplayed } = await agents.run('quick', 'another body', 'another-key');
    expect(idempotencyReplayed).toBeUndefined();
    const { items } = await agents.call('listAgentExecutions', { status: 'cancelled', pageSize: 100 });
    expect(items.map(({ charge }) => charge)).toEqual(Array.from({ length: 20 }, () => 0));
  });
});
