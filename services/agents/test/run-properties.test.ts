import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import type { AgentExecutionSummary } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';
import { say } from './runtimes/llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { SECRET } from './runtimes/test-runtimes.ts';

const DRAWS = 40;

/** Of each runtime one that succeeds and one that fails, and those that refuse to run. */
const AGENTS = [
  ...['echo', 'fails', 'script', 'scriptFails', 'http', 'httpFails', 'llm', 'llmFails'],
  ...['capped', 'missing', 'expensive', 'strict'],
];

interface Request {
  agent: string;
  n: number;
  key: string | undefined;
}
/** What the client received. `reason` is empty after a success. */
interface Answer extends Request {
  reason: string;
  id: string | undefined;
  replayed: boolean;
}

const requests = fc.record({
  agent: fc.constantFrom(...AGENTS),
  n: fc.nat(2),
  key: fc.constantFrom(undefined, 'a', 'b'),
});
/** Batches of requests: those of one batch are sent at once, the batches one after the other. */
const schedules = fc.array(fc.array(requests, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });
/** Reasons of an answer that an execution gave. */
const ANSWERED = ['', 'AGENT_FAILED'];
const EXPECTED = [
  ...ANSWERED,
  'NOT_FOUND',
  'INSUFFICIENT_CREDITS',
  'INVALID_ARGS',
  'RUN_IN_PROGRESS',
  'IDEMPOTENCY_KEY_REUSED',
];

/** Credits for each unit, where a price is not fixed. */
const PRICES = { steps: 0.01, cpuMs: 0.001, calls: 0.5, tokensIn: 0.01, tokensOut: 0.1 };
const METERED = { base: 2, max: 5 };

/** Status and charge, as the prices say. */
function expectedEnd(agent: string, usage: string): string {
  if (agent === 'echo') return 'succeeded 1';
  if (agent === 'capped') return 'succeeded 2.5';
  const used = Object.entries(JSON.parse(usage) as Partial<typeof PRICES>);
  const micros = used.reduce((sum, [unit, n]) => sum + n * Math.round(PRICES[unit as keyof typeof PRICES] * 1e6), 0);
  const failed = /fails$/i.test(agent);
  return `${failed ? 'failed' : 'succeeded'} ${Math.min(5e6, micros + (failed ? 0 : 2e6)) / 1e6}`;
}

const pricingOf = (...units: (keyof typeof PRICES)[]) => ({
  pricing: { ...METERED, perUnit: Object.fromEntries(units.map((unit) => [unit, PRICES[unit]])) },
});

describe('random schedules of runs', () => {
  let agents: Agents;
  let endpoint: Endpoint;
  beforeAll(async () => {
    endpoint = await startEndpoint(({ path }, response) => {
      if (path === '/http') return answerWith(response, { output: 1 });
      if (path === '/httpFails') return answerWith(response, { error: 'no' });
      if (path === '/llm/chat/completions') return say(response, 'yes');
      answerWith(response, { error: { message: 'no' } }, 400);
    });
    agents = await startAgents({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
    await agents.operate('setSecret', { name: 'signing', value: SECRET, overlapSeconds: 0 });
    const publish = (name: string, source: string, more?: Record<string, unknown>) =>
      agents.publish(definitionOf(name, source, more));
    const script = (source: string) => ({
      ...pricingOf('steps', 'cpuMs'),
      runtime: { type: 'script', language: 'javascript', source },
    });
    await publish('echo', '$');
    await publish('fails', '$error("no")', pricingOf('steps', 'cpuMs'));
    await publish('script', '', script('function run(args) { return args; }'));
    await publish('scriptFails', '', script('function run() { throw "no"; }'));
    for (const name of ['http', 'httpFails'])
      await publish(name, '', {
        ...pricingOf('calls'),
        runtime: { type: 'http', url: `${endpoint.url}/${name}`, secretRef: 'signing' },
      });
    for (const name of ['llm', 'llmFails'])
      await publish(name, '', {
        ...pricingOf('calls', 'tokensIn', 'tokensOut'),
        runtime: { type: 'llm', url: `${endpoint.url}/${name}`, model: 'tested', prompt: '{{args.n}}' },
      });
    await publish('capped', '$', { pricing: { base: 2, max: 2.5, perUnit: { steps: 1, cpuMs: 1 } } });
    await publish('expensive', '1', { pricing: { base: 5_000 } });
    await publish('strict', '$', { argumentsSchema: { type: 'object', maxProperties: 0 } });
  });
  afterAll(async () => {
    await agents.service.stop();
    await endpoint.close();
  });

  function send({ agent, n, key }: Request): Promise<Answer> {
    const answer = (reason: string, id: string | undefined, replayed: boolean): Answer => ({
      agent,
      n,
      key,
      reason,
      id,
      replayed,
    });
    return agents.run(agent, { n }, key).then(
      ({ agentExecutionId, idempotencyReplayed }) => answer('', agentExecutionId, idempotencyReplayed === 'true'),
      ({ reason, facts, headers }) =>
        answer(reason, facts?.agentExecutionId, headers?.['Idempotency-Replayed'] === 'true'),
    );
  }

  async function listAll(): Promise<AgentExecutionSummary[]> {
    const items: AgentExecutionSummary[] = [];
    let cursor: string | undefined;
    do {
      const page = await agents.call('listAgentExecutions', { pageSize: 100, cursor });
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  it('run each key once; the executions listed are those answered, each charged and published once', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        const draw = newId();
        const { spent } = agents.credits.account;
        const answers: Answer[] = [];
        for (const batch of schedule)
          answers.push(
            ...(await Promise.all(batch.map((one) => send({ ...one, key: one.key && `${draw}-${one.key}` })))),
          );

        const answered = answers.filter(({ reason }) => ANSWERED.includes(reason));
        for (const key of new Set(answered.flatMap((one) => one.key ?? []))) {
          const ofKey = answered.filter((one) => one.key === key);
          expect(new Set(ofKey.map(({ agent, n, id }) => `${agent} ${n} ${id}`)).size).toBe(1);
          expect(ofKey.filter(({ replayed }) => !replayed)).toHaveLength(1);
        }
        expect(answers.filter(({ key, replayed }) => key === undefined && replayed)).toEqual([]);
        expect(answers.map(({ reason }) => reason).filter((reason) => !EXPECTED.includes(reason))).toEqual([]);

        const created = (await listAll()).filter(({ id }) => !seen.has(id));
        for (const { id } of created) seen.add(id);
        expect(created.map(({ id }) => id).sort()).toEqual([...new Set(answered.map(({ id }) => id))].sort());
        expect(
          created.filter(
            ({ agent, status, charge, usage }) => `${status} ${charge}` !== expectedEnd(agent, usage ?? '{}'),
          ),
        ).toEqual([]);
        expect(agents.credits.account).toMatchObject({ reserved: 0, open: 0 });
        expect(created.reduce((sum, { charge }) => sum + Math.round((charge ?? 0) * 1e6), 0)).toBe(
          agents.credits.account.spent - spent,
        );

        const finished = (await agents.events()).filter(
          ({ type, data }) => type === 'agent.execution.finished.v1' && created.some(({ id }) => id === data.id),
        );
        expect(finished.map(({ data }) => data.id).sort()).toEqual(created.map(({ id }) => id).sort());
      }),
      { numRuns: DRAWS },
    );
  });
});
