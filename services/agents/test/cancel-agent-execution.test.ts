import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { cancelAgentExecution } from '../src/executions/cancel-agent-execution.ts';
import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';
import { simulateProcesses } from './simulated-processes.ts';

const PRICE = { base: 2, max: 50, perUnit: { cpuMs: 0.001 } };
const LIMITS = { wallMs: 300_000, maxSteps: 1_000_000_000 };
const failureOf = (call: Promise<unknown>): Promise<unknown> => call.then(String, (error: unknown) => error);

describe('CancelAgentExecution', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('endless', ENDLESS, { limits: LIMITS, pricing: PRICE }));
    await agents.publish(definitionOf('quick', '1'));
  });
  afterAll(() => agents.service.stop());

  const withStatus = async (status: string): Promise<string[]> =>
    (await agents.call('listAgentExecutions', { status })).items.map(({ id }) => id);
  const cancel = (id: string, ...given: [principal?: object]) =>
    agents.call('cancelAgentExecution', { id }, ...(given as []));
  const read = async (id: string) => (await agents.call('getAgentExecution', { id })).agentExecution!;

  it('ends a running execution: its caller is told, and only what it has used is charged', async () => {
    const run = failureOf(agents.run('endless', {}));
    await until(async () => (await withStatus('running')).length === 1);
    const [id] = (await withStatus('running')) as [string];
    expect(await cancel(id)).toMatchObject({ agentExecution: { id, status: 'running' }, outcome: 'CANCEL_REQUESTED' });
    expect(await run).toMatchObject({ reason: 'RUN_CANCELLED', facts: { agentExecutionId: id } });
    const ended = await read(id);
    expect(ended).toMatchObject({ status: 'cancelled', output: undefined });
    const { cpuMs } = JSON.parse(ended.usage ?? '') as { cpuMs: number };
    expect(cpuMs).toBeGreaterThan(0);
    expect(ended.charge).toBeCloseTo(cpuMs / 1_000, 6);
    expect(agents.credits.account.reserved).toBe(0);
  });

  it('finds it by its id in upper case, too', async () => {
    const run = failureOf(agents.run('endless', {}));
    await until(async () => (await withStatus('running')).length === 1);
    await cancel((await withStatus('running'))[0]!.toUpperCase());
    expect(await run).toMatchObject({ reason: 'RUN_CANCELLED' });
  });

  it('ends one with an idempotency key, too, whose repeats get the same failure', async () => {
    const run = failureOf(agents.run('endless', {}, 'key'));
    await until(async () => (await withStatus('running')).length === 1);
    await cancel((await withStatus('running'))[0]!);
    expect(await run).toMatchObject({ reason: 'RUN_CANCELLED' });
    expect(await failureOf(agents.run('endless', {}, 'key'))).toMatchObject({
      reason: 'RUN_CANCELLED',
      headers: expect.objectContaining({ 'Idempotency-Replayed': 'true' }),
    });
  });

  it('refuses what has ended, and what does not exist or is of another organization, with one answer', async () => {
    const { agentExecutionId: id } = await agents.run('quick', {});
    expect(await failureOf(cancel(id))).toMatchObject({ reason: 'CONFLICT', message: 'The agent execution has ended' });
    const foreign = { principal: serverToken(newId()) };
    const calls = [cancel(newId()), cancel('nothing'), cancel(id, foreign)];
    for (const failure of await Promise.all(calls.map(failureOf)))
      expect(failure).toMatchObject({ reason: 'NOT_FOUND', message: 'Agent execution not found' });
  });

  it('is for operators, too, and may be repeated; the audit trail has it once', async () => {
    const run = failureOf(agents.run('endless', {}));
    await until(async () => (await withStatus('running')).length === 1);
    const [id] = (await withStatus('running')) as [string];
    await agents.operate('cancelAgentExecution', { id });
    await agents.operate('cancelAgentExecution', { id }).catch(() => undefined);
    await run;
    const entries = (await agents.events()).filter(
      ({ data }) => data.action === 'agent.cancel_run' && (data.target as { id: string }).id === id,
    );
    expect(entries.map(({ data }) => data)).toEqual([
      expect.objectContaining({ actor: expect.objectContaining({ kind: 'operator' }), outcome: 'success' }),
    ]);
  });
});

describe('a cancellation that another process takes than the one that runs', () => {
  it('ends the run, and one that waits for a runner costs nothing', async () => {
    const simulation = await simulateProcesses({ leaseMs: 2_000 });
    const [owner, other] = [simulation.healthy, simulation.process()];
    await simulation.publish(
      definitionOf('endless', ENDLESS, { limits: LIMITS, pricing: { ...PRICE, base: 3, max: 5 } }),
    );
    const runs = [simulation.run(owner, 'endless'), simulation.run(owner, 'endless')].map(failureOf);
    await until(async () => (await simulation.records()).some(({ status }) => status === 'running'));
    await until(async () => (await simulation.records()).length === 2);
    for (const { _id } of await simulation.records())
      await cancelAgentExecution(other, { id: _id }, simulation.context());
    for (const run of runs) expect(await run).toMatchObject({ reason: 'RUN_CANCELLED' });
    const ended = await simulation.records();
    expect(ended.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    expect(ended.map(({ chargeMicros }) => chargeMicros === 0).sort()).toEqual([false, true]);
    expect(simulation.account.reserved).toBe(0);
    await simulation.close();
  });

  it.each([
    ['there are not enough credits', { available: 0 }],
    ['credits does not answer', undefined],
  ])('ends a run as cancelled that cannot begin, because %s: for nothing, and it is found', async (_, left) => {
    const simulation = await simulateProcesses();
    const { healthy } = simulation;
    await simulation.publish(definitionOf('quick', '1'));
    const credits: typeof healthy.credits = {
      ...healthy.credits,
      async reserve(...given) {
        for (const { _id } of await simulation.records())
          await cancelAgentExecution(simulation.process(), { id: _id }, simulation.context());
        if (!left) throw new ServiceError('UNAVAILABLE');
        return { ...(await healthy.credits.reserve(...given)), outcome: 'INSUFFICIENT' };
      },
    };
    const [outcome] = [await failureOf(simulation.run({ ...healthy, credits }, 'quick', 'key'))];
    const [ended] = await simulation.records();
    expect(outcome).toMatchObject({ reason: 'RUN_CANCELLED', facts: { agentExecutionId: ended!._id } });
    expect(ended).toMatchObject({ status: 'cancelled', chargeMicros: 0 });
    expect(await failureOf(simulation.run(healthy, 'quick', 'key'))).toMatchObject({ reason: 'RUN_CANCELLED' });
    expect(simulation.account.spent).toBe(0);
    await simulation.close();
  });

  it.each([
    ['succeeded', '1', {}],
    ['failed', '$error("no")', {}],
    ['timed out', ENDLESS, { limits: { maxSteps: 1_000 } }],
  ])('ends a run as cancelled that has %s before it heard of it, and charges no base price', async (_, code, given) => {
    const simulation = await simulateProcesses();
    const other = simulation.process();
    const answers: string[] = [];
    const owner = simulation.process(async (step, side) => {
      if (step !== 'finish' || side !== 'before') return;
      const id = (await simulation.records())[0]!._id;
      answers.push((await cancelAgentExecution(other, { id }, simulation.context())).outcome);
    });
    await simulation.publish(definitionOf('ends', code, { ...given, pricing: { base: 3, max: 5 } }));
    expect(await failureOf(simulation.run(owner, 'ends'))).toMatchObject({ reason: 'RUN_CANCELLED' });
    expect(await simulation.records()).toMatchObject([{ status: 'cancelled', chargeMicros: 0 }]);
    expect(simulation.account).toMatchObject({ reserved: 0 });
    expect(answers).toEqual(['CANCEL_REQUESTED', 'CANCEL_REQUESTED']);
    await simulation.close();
  });
});
