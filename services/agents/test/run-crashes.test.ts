import fc from 'fast-check';
import { hashToken } from 'platform/core/bearer-token.ts';
import { useCallbackToken } from '../src/callback-tokens/use-callback-token.ts';
import { cancelAgentExecution } from '../src/executions/cancel-agent-execution.ts';
import type { Deps } from '../src/deps.ts';
import { isActive } from '../src/executions/rules.ts';
import { definitionOf } from './fixture.ts';
import { callTools, chatOf, say } from './runtimes/llm/model-server.ts';
import { answerWith, startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { runners } from './runtimes/runners/pool-fixture.ts';
import { REAPER_STEPS, simulateProcesses, STEPS, type Simulation, type Step } from './simulated-processes.ts';

const DRAWS = 40;
const LEASE_MS = 20_000;
const TTL_MS = 60_000;
const AGENTS = ['expression', 'script', 'http', 'llm'];
/** As many processes as may be frozen in one draw, and a runner for each of them beside one for the others. */
const MOST_FROZEN = 3;

/** What a run may cost by its end, in micro-credits. */
const CHARGES = { succeeded: [3_010_000, 5e6], cancelled: [0, 2e6], interrupted: [0, 0] } as const;

/** Where a process dies; a tool is called twice in a run. */
const deaths = fc.record({
  step: fc.constantFrom<Step>(...STEPS, 'issueToken', 'tool', 'tool', 'tool'),
  side: fc.constantFrom('before' as const, 'after' as const),
  nth: fc.constantFrom(1, 2),
});
const reaperDeaths = fc.record({
  step: fc.constantFrom<Step>(...REAPER_STEPS),
  side: fc.constantFrom('before' as const, 'after' as const),
});
const runOf = { agent: fc.constantFrom(...AGENTS), key: fc.constantFrom(undefined, 'a', 'b') };
const actions = fc.oneof(
  { weight: 3, arbitrary: fc.record({ act: fc.constant('die' as const), ...runOf, death: deaths }) },
  // Several clients send the same request, to both replicas.
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('run' as const), ...runOf, times: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('cancel' as const), nth: fc.nat(5) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant('reap' as const),
      afterMs: fc.constantFrom(LEASE_MS + 1, TTL_MS + 1),
      death: fc.option(reaperDeaths),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('thaw' as const) }) },
);

describe('runs of every runtime with tools, whose processes die or stall anywhere', () => {
  let simulation: Simulation;
  let endpoint: Endpoint;
  /** Callback tokens that the endpoint has got. */
  const tokens: string[] = [];
  beforeAll(async () => {
    endpoint = await startEndpoint((request, response) => {
      if (request.path === '/http') {
        const { callback } = JSON.parse(request.body) as { callback: { token: string } };
        tokens.push(callback.token);
        return answerWith(response, { output: 'done' });
      }
      const turn = chatOf(request).messages.filter(({ role }) => role === 'tool').length;
      if (turn === 0) callTools(response, [['memory_create', { type: 'Note', key: 'n', content: {}, upsert: true }]]);
      else if (turn === 1) callTools(response, [['memory_find', { type: 'Note' }]]);
      else say(response, 'done');
    });
    simulation = await simulateProcesses({
      ...{ leaseMs: LEASE_MS, ttlMs: TTL_MS, granted: 100_000, runners: MOST_FROZEN + 1 },
    });
    const runtimes = {
      expression: { language: 'jsonata', source: '"done"' },
      script: {
        language: 'javascript',
        source: `async function run() {
          await memory.create({ type: 'Note', key: 'n', content: {}, upsert: true });
          await memory.find({ type: 'Note' });
          return 'done';
        }`,
      },
      http: { url: `${endpoint.url}/http`, secretRef: 'signing' },
      llm: { url: endpoint.url, model: 'tested', prompt: 'Keep a note.' },
    };
    const prices: Record<string, object> = {
      ...{ expression: { steps: 0.01 }, script: { steps: 0.01 }, http: { calls: 0.1 }, llm: { calls: 0.1 } },
    };
    const tools = { memory: { types: ['Note'], access: 'write' } };
    for (const [type, runtime] of Object.entries(runtimes))
      await simulation.publish(
        definitionOf(type, '', {
          ...{ runtime: { type, ...runtime }, pricing: { base: 3, max: 5, perUnit: prices[type] } },
          // A callback token is good for so long, unless its run ends.
          limits: { wallMs: 300_000 },
          ...(type !== 'expression' && { tools }),
        }),
      );
  });
  afterAll(() => endpoint.close());

  interface Args {
    key?: string;
  }
  /** What the endpoint of the http agent gets. */
  interface Call {
    agentExecutionId: string;
    args: Args;
  }
  interface Answer {
    agent: string;
    key: string | undefined;
    id: string;
    output: string;
  }

  it('end each run once, charge it once as recorded, keep what was answered, and leave nothing open', async () => {
    const seen = new Set<string>();
    let draw = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(actions, { minLength: 1, maxLength: 12 }), async (schedule) => {
        draw += 1;
        const replicas = [simulation.process(), simulation.process()];
        const frozen: { thaw(): void; run: Promise<void> }[] = [];
        const dying: Deps[] = [];
        const answers: Answer[] = [];
        endpoint.requests.splice(0);

        let reasons: string[] = [];
        const keyOf = (key: string | undefined) => key && `${draw}-${key}`;
        const send = (process: Deps, { agent, key }: { agent: string; key: string | undefined }) =>
          simulation.run(process, agent, keyOf(key), JSON.stringify({ key: keyOf(key) })).then(
            ({ agentExecutionId: id, output }) => void answers.push({ agent, key: keyOf(key), id, output }),
            ({ reason }) => void (reasons = [...reasons, reason as string]),
          );
        async function awake(some: typeof frozen): Promise<void> {
          for (const { thaw } of some) thaw();
          await Promise.all(some.map(({ run }) => run));
        }
        const sent = new Map<string, { agent: string; key: string | undefined }>();

        for (const one of schedule) {
          if ('key' in one && one.key !== undefined) sent.set(`${one.agent} ${one.key}`, one);
          if (one.act === 'run')
            await Promise.all(Array.from({ length: one.times }, (_, n) => send(replicas[n % 2]!, one)));
          else if (one.act === 'die' && frozen.length < MOST_FROZEN) {
            const { step, side, nth } = one.death;
            const freeze = simulation.freezeAt(step, side, step === 'tool' ? nth : 1);
            const process = simulation.process(freeze.probe);
            dying.push(process);
            const run = send(process, one);
            frozen.push({ ...freeze, run });
            await Promise.race([freeze.frozen, run]);
          } else if (one.act === 'cancel') {
            const active = (await simulation.records()).filter(isActive);
            const { _id: id } = active[one.nth % active.length] ?? {};
            if (id) await cancelAgentExecution(replicas[0]!, { id }, simulation.context());
          } else if (one.act === 'reap') {
            simulation.advance(one.afterMs);
            simulation.sweep();
            if (one.death === null || frozen.length === MOST_FROZEN) await simulation.reap(replicas[1]);
            else {
              const freeze = simulation.freezeAt(one.death.step, one.death.side);
              const process = simulation.process(freeze.probe);
              dying.push(process);
              const run = simulation.reap(process).then(() => undefined);
              frozen.push({ ...freeze, run });
              await Promise.race([freeze.frozen, run]);
            }
          } else if (one.act === 'thaw') await awake(frozen.splice(0, 1));
        }

        // What is dead stays dead until the reaper and the sweeper have been, and the clients have repeated their
        // requests; then the slow ones awake.
        simulation.advance(LEASE_MS + 1);
        await simulation.reap();
        simulation.advance(TTL_MS + 1);
        simulation.sweep();
        const ended = (await simulation.records()).filter(({ _id }) => !seen.has(_id));
        expect(ended.filter(isActive)).toEqual([]);
        expect(simulation.account).toMatchObject({ reserved: 0, open: 0 });
        reasons = [];
        for (const one of sent.values()) await send(replicas[0]!, one);
        expect(reasons.filter((reason) => !['IDEMPOTENCY_KEY_REUSED', 'RUN_CANCELLED'].includes(reason))).toEqual([]);
        await awake(frozen);
        for (const process of [...dying, ...replicas]) await simulation.markSettled(process);
        simulation.advance(LEASE_MS + 1);
        await simulation.reap();
        simulation.advance(TTL_MS + 1);
        simulation.sweep();

        const records = (await simulation.records()).filter(({ _id }) => !seen.has(_id));
        for (const { _id } of records) seen.add(_id);
        const states = (all: typeof records) => new Map(all.map(({ _id, status }) => [_id, status]));
        expect([...states(records)].filter(([id]) => states(ended).has(id))).toEqual([...states(ended)]);
        expect(records.filter(({ leaseUntil }) => leaseUntil !== null)).toEqual([]);
        expect(simulation.account).toMatchObject({ reserved: 0, open: 0 });
        for (const { _id, status, chargeMicros } of records) {
          const [least, most] = CHARGES[status as keyof typeof CHARGES];
          expect(chargeMicros).toBeGreaterThanOrEqual(least);
          expect(chargeMicros).toBeLessThanOrEqual(most);
          const charged = simulation.chargesOf(_id).filter((charge) => charge > 0);
          expect(charged).toEqual(chargeMicros === 0 ? [] : [chargeMicros]);
        }
        const argsOf = new Map(
          (await simulation.allPayloads()).map(({ _id, args }) => [_id, JSON.parse(args) as Args]),
        );
        const succeeded = records.filter(({ status }) => status === 'succeeded');
        const keysOf = succeeded.flatMap(({ _id }) => argsOf.get(_id)?.key ?? []);
        expect(new Set(keysOf).size).toBe(keysOf.length);
        const finished = (await simulation.events()).filter(
          ({ type, data }) => type === 'agent.execution.finished.v1' && states(records).has(data.id as string),
        );
        expect(finished.map(({ data }) => [data.id, data.status]).sort()).toEqual(
          records.map(({ _id, status }) => [_id, status]).sort(),
        );

        // A success that was answered is found again, by its id and by its key.
        const byId = states(records);
        for (const { id } of answers) expect(byId.get(id)).toBe('succeeded');
        for (const [key, successes] of Map.groupBy(answers, (answer) => answer.key)) {
          if (key === undefined) continue;
          const [{ id: agentExecutionId, agent, output }] = successes as [Answer];
          expect(successes.filter(({ id }) => id !== agentExecutionId)).toEqual([]);
          expect(await simulation.run(simulation.healthy, agent, key, JSON.stringify({ key }))).toMatchObject({
            agentExecutionId,
            output,
            idempotencyReplayed: 'true',
          });
        }

        // An endpoint knows each key by one id, whichever runs called it, and other runs by one of their own.
        const calls = endpoint.requests
          .filter(({ path }) => path === '/http')
          .map(({ headers, body }) => ({ id: headers['webhook-id'] as string, call: JSON.parse(body) as Call }));
        const idsOf = Map.groupBy(calls, ({ call }) => call.args.key ?? call.agentExecutionId);
        for (const ofOne of idsOf.values()) expect(new Set(ofOne.map(({ id }) => id)).size).toBe(1);
        expect(new Set(calls.map(({ id }) => id)).size).toBe(idsOf.size);

        // No callback token outlives its run.
        for (const token of tokens.splice(0))
          expect(
            await useCallbackToken(simulation.healthy, { hash: hashToken(token), calls: 1 }, simulation.context()),
          ).toMatchObject({ run: undefined, admitted: 0 });
      }),
      { numRuns: DRAWS },
    );
    expect(seen.size).toBeGreaterThan(DRAWS);
    await simulation.close();
    expect([endpoint.connections(), runners()]).toEqual([0, []]);
  });
});
