import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import type { AgentExecutionSummary } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, type Agents } from './agents-fixture.ts';

const DRAWS = 40;

interface Asked {
  agent: 'echo' | 'fails' | 'missing' | 'dear' | 'strict';
  n: number;
  key: string | undefined;
}
/** What the client was told. */
interface Told extends Asked {
  reason: string;
  id: string | undefined;
  replayed: boolean;
}

const asked = fc.record({
  agent: fc.constantFrom<Asked['agent']>('echo', 'fails', 'missing', 'dear', 'strict'),
  n: fc.nat(2),
  key: fc.constantFrom(undefined, 'a', 'b'),
});
/** Those of one array come at once, the arrays one after the other. */
const schedules = fc.array(fc.array(asked, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });
const ANSWERED = ['', 'AGENT_FAILED'];
const EXPECTED = [
  ...ANSWERED,
  'NOT_FOUND',
  'INSUFFICIENT_CREDITS',
  'INVALID_ARGS',
  'RUN_IN_PROGRESS',
  'IDEMPOTENCY_KEY_REUSED',
];

describe('runs at random', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('echo', '$'));
    await agents.publish(
      definitionOf('fails', '$error("no")', { pricing: { base: 2, max: 5, perUnit: { steps: 0.01 } } }),
    );
    await agents.publish(definitionOf('dear', '1', { pricing: { base: 5_000 } }));
    await agents.publish(definitionOf('strict', '$', { argumentsSchema: { type: 'object', maxProperties: 0 } }));
  });
  afterAll(() => agents.service.stop());

  function ask({ agent, n, key }: Asked): Promise<Told> {
    const told = (reason: string, id: string | undefined, replayed: boolean): Told => ({
      agent,
      n,
      key,
      reason,
      id,
      replayed,
    });
    return agents.run(agent, { n }, key).then(
      ({ agentExecutionId, idempotencyReplayed }) => told('', agentExecutionId, idempotencyReplayed === 'true'),
      ({ reason, facts, headers }) =>
        told(reason, facts?.agentExecutionId, headers?.['Idempotency-Replayed'] === 'true'),
    );
  }

  async function listed(): Promise<AgentExecutionSummary[]> {
    const items: AgentExecutionSummary[] = [];
    let cursor: string | undefined;
    do {
      const page = await agents.call('listAgentExecutions', { pageSize: 100, cursor });
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  it('each key is one run of one request; what is listed is what was answered, is charged once and heard of once', async () => {
    const earlier = new Set<string>();
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        const draw = newId();
        const { spent } = agents.credits.account;
        const told: Told[] = [];
        for (const batch of schedule)
          told.push(...(await Promise.all(batch.map((one) => ask({ ...one, key: one.key && `${draw}-${one.key}` })))));

        const answered = told.filter(({ reason }) => ANSWERED.includes(reason));
        for (const key of new Set(answered.flatMap((one) => one.key ?? []))) {
          const ofKey = answered.filter((one) => one.key === key);
          expect(new Set(ofKey.map(({ agent, n, id }) => `${agent} ${n} ${id}`)).size).toBe(1);
          expect(ofKey.filter(({ replayed }) => !replayed)).toHaveLength(1);
        }
        expect(told.filter(({ key, replayed }) => key === undefined && replayed)).toEqual([]);
        expect(told.map(({ reason }) => reason).filter((reason) => !EXPECTED.includes(reason))).toEqual([]);

        const made = (await listed()).filter(({ id }) => !earlier.has(id));
        for (const { id } of made) earlier.add(id);
        expect(made.map(({ id }) => id).sort()).toEqual([...new Set(answered.map(({ id }) => id))].sort());
        expect(
          made.filter(
            ({ agent, status, charge }) =>
              !(agent === 'echo' ? status === 'succeeded' && charge === 1 : agent === 'fails' && status === 'failed'),
          ),
        ).toEqual([]);
        expect(agents.credits.account).toMatchObject({ reserved: 0, open: 0 });
        expect(made.reduce((sum, { charge }) => sum + Math.round((charge ?? 0) * 1e6), 0)).toBe(
          agents.credits.account.spent - spent,
        );

        const ends = (await agents.events()).filter(
          ({ type, data }) => type === 'agent.execution.finished.v1' && made.some(({ id }) => id === data.id),
        );
        expect(ends.map(({ data }) => data.id).sort()).toEqual(made.map(({ id }) => id).sort());
      }),
      { numRuns: DRAWS },
    );
  });
});
