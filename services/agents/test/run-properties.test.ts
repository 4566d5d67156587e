import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import type { AgentExecutionSummary } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

const DRAWS = 40;

interface Request {
  agent: 'echo' | 'fails' | 'capped' | 'missing' | 'expensive' | 'strict';
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
  agent: fc.constantFrom<Request['agent']>('echo', 'fails', 'capped', 'missing', 'expensive', 'strict'),
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

/** Status and charge, as the prices below say. */
function expectedEnd(agent: string, usage: string): string | undefined {
  const { steps, cpuMs } = JSON.parse(usage) as { steps: number; cpuMs: number };
  if (agent === 'echo') return 'succeeded 1';
  if (agent === 'capped') return 'succeeded 2.5';
  if (agent === 'fails') return `failed ${Math.min(5_000_000, steps * 10_000 + cpuMs * 1_000) / 1e6}`;
  return undefined;
}

describe('random schedules of runs', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('echo', '$'));
    await agents.publish(
      definitionOf('fails', '$error("no")', { pricing: { base: 2, max: 5, perUnit: { steps: 0.01, cpuMs: 0.001 } } }),
    );
    await agents.publish(
      definitionOf('capped', '$', { pricing: { base: 2, max: 2.5, perUnit: { steps: 1, cpuMs: 1 } } }),
    );
    await agents.publish(definitionOf('expensive', '1', { pricing: { base: 5_000 } }));
    await agents.publish(definitionOf('strict', '$', { argumentsSchema: { type: 'object', maxProperties: 0 } }));
  });
  afterAll(() => agents.service.stop());

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
