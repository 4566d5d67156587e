import fc from 'fast-check';
import { DAY_MS } from 'platform/core/clock.ts';
import { insert, remove } from 'platform/store/store.ts';
import { serverToken } from 'platform/service/testing.ts';
import { executionBytes, payloadBytes } from '../src/executions/rules.ts';
import { EXECUTION_PAYLOADS, EXECUTIONS } from '../src/executions/store.ts';
import { executionBytesJob } from '../src/jobs/count-bytes.ts';
import { retentionJob } from '../src/jobs/retention.ts';
import { USAGE } from '../src/usage/store.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';
import { simulateProcesses, STEPS, type Simulation, type Step } from './simulated-processes.ts';

const never = new AbortController().signal;
const sum = (numbers: readonly (number | undefined)[]): number =>
  numbers.reduce<number>((total, n) => total + (n ?? 0), 0);

/** Expects that the counter, the documents' own numbers and their sizes agree. @returns the counter */
async function expectCounted({ store, organizationId, healthy }: Simulation): Promise<number> {
  const stored = [
    ...(await store.find(organizationId, EXECUTIONS, {})).map((one) => ({ is: one.bytes, size: executionBytes(one) })),
    ...(await store.find(organizationId, EXECUTION_PAYLOADS, {})).map((one) => ({
      is: one.bytes,
      size: payloadBytes(one),
    })),
  ];
  const counted = await healthy.usage.storedBytes(organizationId);
  expect(stored.map(({ is }) => is)).toEqual(stored.map(({ size }) => size));
  expect(counted).toBe(sum(stored.map(({ size }) => size)));
  return counted;
}

describe('the stored bytes of executions', () => {
  let simulation: Simulation;
  beforeEach(async () => {
    simulation = await simulateProcesses({ granted: 1_000 });
    await simulation.publish(definitionOf('echo', '$'));
    await simulation.publish(definitionOf('fails', '$error("the ü of " & text)'));
    await simulation.publish(definitionOf('expensive', '1', { pricing: { base: 5_000 } }));
  });
  afterEach(() => simulation.close());

  const actions = fc.oneof(
    fc.record({
      act: fc.constant('run' as const),
      agent: fc.constantFrom('echo', 'echo', 'fails', 'expensive'),
      text: fc.string({ unit: 'grapheme', maxLength: 200 }),
      key: fc.constantFrom(undefined, 'a', 'b'),
      /** The step at which the process dies. */
      dies: fc.option(fc.tuple(fc.constantFrom(...STEPS), fc.constantFrom('before' as const, 'after' as const)), {
        nil: undefined,
      }),
    }),
    fc.record({ act: fc.constant('wait' as const), days: fc.constantFrom(0, 1, 30, 60) }),
  );

  it('are the sum of what is stored, after any runs, crashes and rounds of the reaper and of retention', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(actions, { maxLength: 10 }), async (schedule) => {
        for (const one of schedule) {
          if (one.act === 'run') {
            const dying = simulation.process((step: Step, side) => {
              if (one.dies?.[0] === step && one.dies[1] === side) throw new Error('killed');
            });
            await simulation
              .run(dying, one.agent, one.key, JSON.stringify({ text: one.text }))
              .catch((error: unknown) => error);
          } else {
            simulation.advance(one.days * DAY_MS + 60_000);
            await simulation.reap();
            await retentionJob(simulation.healthy).run(never);
          }
          await expectCounted(simulation);
        }
      }),
      { numRuns: 25 },
    );
    simulation.advance(400 * DAY_MS);
    await simulation.reap();
    await retentionJob(simulation.healthy).run(never);
    expect(await simulation.records()).toEqual([]);
    expect(await expectCounted(simulation)).toBe(0);
  });

  it('of a store of an earlier release are counted once, also when they are removed before they are counted', async () => {
    const { store, organizationId, healthy } = simulation;
    for (let n = 0; n < 30; n++) await simulation.run(healthy, 'echo', undefined, JSON.stringify({ text: n }));
    const right = await expectCounted(simulation);
    const executions = await store.find(organizationId, EXECUTIONS, {});
    const payloads = await store.find(organizationId, EXECUTION_PAYLOADS, {});
    const usage = await store.find(organizationId, USAGE, {});
    await store.apply(organizationId, [
      ...executions.map(({ _id }) => remove(EXECUTIONS, { _id })),
      ...payloads.map(({ _id }) => remove(EXECUTION_PAYLOADS, { _id })),
      ...usage.map(({ _id }) => remove(USAGE, { _id })),
    ]);
    await store.apply(organizationId, [
      ...executions.map(({ bytes: _, ...old }) => insert(EXECUTIONS, old)),
      ...payloads.map(({ bytes: _, ...old }) => insert(EXECUTION_PAYLOADS, old)),
    ]);

    const job = executionBytesJob(healthy);
    let batches = 0;
    const dying = {
      ...healthy,
      platformStore: {
        ...healthy.platformStore,
        apply: (ops: Parameters<typeof healthy.platformStore.apply>[0]) =>
          ++batches === 3 ? Promise.reject(new Error('killed')) : healthy.platformStore.apply(ops),
      },
    };
    await expect(executionBytesJob(dying).run(never)).rejects.toThrow('killed');
    const partly = await healthy.usage.storedBytes(organizationId);
    expect([partly > 0, partly < right]).toEqual([true, true]);
    expect(await job.run(never)).toBeGreaterThan(0);
    expect(await expectCounted(simulation)).toBe(right);
    expect(await job.run(never)).toBe(0);

    const [first] = payloads;
    await store.apply(organizationId, [remove(EXECUTION_PAYLOADS, { _id: first!._id })]);
    const { bytes: _, ...old } = first!;
    await store.apply(organizationId, [insert(EXECUTION_PAYLOADS, { ...old, createdAt: '2020-01-01T00:00:00.000Z' })]);
    await retentionJob(healthy).run(never);
    expect(await healthy.usage.storedBytes(organizationId)).toBe(right);
  });
});

describe('the limit execution_bytes', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents({ env: { RUNNERS: '2', RUNNERS_MAX: '2' } });
    await agents.publish(definitionOf('echo', '$'));
  });
  afterAll(() => agents.service.stop());

  const NO_RUN = executionBytes({ error: null }) + payloadBytes({ args: '', output: null, messages: '[]' });
  const limitedTo = (executionBytes: number) =>
    serverToken(agents.organizationId, { limits: { execution_bytes: executionBytes } });
  const run = (limit: number, args: string, idempotencyKey?: string) =>
    agents.call('runAgent', { agentName: 'echo', args, idempotencyKey }, { principal: limitedTo(limit) });
  const refused = { reason: 'TIER_LIMIT', facts: { limit: 'execution_bytes' } };
  const used = () => agents.deps().usage.storedBytes(agents.organizationId);

  it('refuses a run before anything is reserved or recorded, and its idempotency key stays free', async () => {
    const before = { ...agents.credits.account };
    const args = JSON.stringify('x'.repeat(1_000));
    const limit = (await used()) + NO_RUN + args.length;
    await expect(run(limit - 1, args, 'free')).rejects.toMatchObject(refused);
    expect(agents.credits.account).toEqual(before);
    expect((await agents.call('listAgentExecutions', {})).items).toEqual([]);
    const { agentExecutionId } = await run(limit, args, 'free');
    // Its output is above the limit; a repeat of the run and reads are answered all the same.
    expect(await used()).toBe(limit + args.length);
    await expect(run(limit, '{}')).rejects.toMatchObject(refused);
    expect(await run(limit, args, 'free')).toMatchObject({ agentExecutionId, idempotencyReplayed: 'true' });
    expect(await agents.call('getAgentExecution', { id: agentExecutionId })).toBeDefined();
  });

  it('is exceeded by no more than what the runs that began below it produce', async () => {
    const args = JSON.stringify('y'.repeat(10_000));
    const limit = (await used()) + 4 * (NO_RUN + args.length);
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => run(limit, args)));
    const begun = outcomes.filter(({ status }) => status === 'fulfilled').length;
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(refused);
    expect(begun).toBeGreaterThan(0);
    expect(begun).toBeLessThanOrEqual(4);
    expect(await used()).toBeLessThanOrEqual(limit + begun * args.length);
  });
});
