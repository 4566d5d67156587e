import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';

describe('RunAgent with an idempotency key', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('echo', '$'));
    await agents.publish(definitionOf('fails', '$error("no")'));
    await agents.publish(definitionOf('slow', ENDLESS, { limits: { wallMs: 5_000, maxSteps: 1_000_000_000 } }));
  });
  afterAll(() => agents.service.stop());
  const failureOf = (promise: Promise<unknown>) =>
    promise.then(
      () => {
        throw new Error('it succeeded');
      },
      (error: { reason: string; facts: object; headers: object }) => error,
    );

  it('repeats the first success for equal JSON, runs and charges once, also after a restart', async () => {
    const first = await agents.call('runAgent', { agentName: 'echo', args: '{"a":1,"b":[1.0]}', idempotencyKey: 'k1' });
    const { spent } = agents.credits.account;
    const again = () =>
      agents.call('runAgent', { agentName: 'echo', args: '{ "b": [1], "a": 1 }', idempotencyKey: 'k1' });
    expect(await again()).toEqual({ ...first, idempotencyReplayed: 'true' });
    await agents.service.restart();
    expect(await again()).toEqual({ ...first, idempotencyReplayed: 'true' });
    expect(agents.credits.account.spent).toBe(spent);
  });

  it('repeats the first failure, with its ids', async () => {
    const first = await failureOf(agents.run('fails', {}, 'k2'));
    const again = await failureOf(agents.run('fails', {}, 'k2'));
    expect(again).toMatchObject({
      reason: first.reason,
      facts: first.facts,
      headers: { 'Idempotency-Replayed': 'true' },
    });
  });

  it('rejects the key with another body', async () => {
    await agents.run('echo', 1, 'k3');
    expect(await failureOf(agents.run('echo', 2, 'k3'))).toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' });
    expect(await failureOf(agents.run('fails', 1, 'k3'))).toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' });
  });

  it.each([
    ['NOT_FOUND', 'missing'],
    ['INVALID_ARGS', 'strict'],
    ['AGENT_NOT_RUNNABLE', 'talks'],
    ['INSUFFICIENT_CREDITS', 'dear'],
    ['UNAVAILABLE', 'fails'],
  ])('leaves the key free when the request was refused: %s', async (reason, agent) => {
    await agents.publish(definitionOf('strict', '1', { argumentsSchema: { required: ['a'] } }));
    await agents.publish(definitionOf('talks', '1', { kind: 'ConversationalAgent' }));
    await agents.publish(definitionOf('dear', '1', { pricing: { base: 1_000_000 } }));
    agents.credits.setDown(reason === 'UNAVAILABLE');
    expect(await failureOf(agents.run(agent, {}, reason))).toMatchObject({ reason });
    agents.credits.setDown(false);
    expect((await agents.run('echo', {}, reason)).idempotencyReplayed).toBeUndefined();
  });

  it('is looked up before anything that a first request needs: a repeat is answered without agent and credits', async () => {
    await agents.publish(definitionOf('once', '$'));
    const first = await agents.run('once', { a: 1 }, 'looked-up');
    await agents.publish(definitionOf('once', '$', { argumentsSchema: { required: ['b'] } }));
    const again = { ...first, idempotencyReplayed: 'true' };
    expect(await agents.run('once', { a: 1 }, 'looked-up')).toEqual(again);
    await agents.operate('retireAgent', { name: 'once' });
    agents.credits.setDown(true);
    expect(await agents.run('once', { a: 1 }, 'looked-up')).toEqual(again);
    expect(await failureOf(agents.run('once', { a: 2 }, 'looked-up'))).toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
    });
    agents.credits.setDown(false);
  });

  it('runs one of many simultaneous requests, gives the others its id, and continues without its client', async () => {
    const aborter = new AbortController();
    const call = () =>
      agents.call('runAgent', { agentName: 'slow', args: '{}', idempotencyKey: 'k5' }, { signal: aborter.signal });
    const outcomes = Array.from({ length: 8 }, () => failureOf(call()));
    await until(() => agents.credits.account.open === 1);
    const inProgress = await failureOf(agents.run('slow', {}, 'k5'));
    aborter.abort();
    await Promise.all(outcomes);
    await until(() => agents.credits.account.open === 0);
    const { items } = await agents.call('listAgentExecutions', { agent: 'slow' });
    expect(items).toMatchObject([{ status: 'timed_out' }]);
    expect(inProgress).toMatchObject({
      reason: 'RUN_IN_PROGRESS',
      facts: { agentExecutionId: items[0]?.id },
      headers: { 'Retry-After': '1' },
    });
    expect(await failureOf(agents.run('slow', {}, 'k5'))).toMatchObject({
      reason: 'RUN_TIMEOUT',
      facts: { agentExecutionId: items[0]?.id },
    });
  });

  it('is interrupted free of charge when the process drains, and frees the key', async () => {
    await agents.publish(definitionOf('drained', ENDLESS, { limits: { wallMs: 30_000, maxSteps: 1_000_000_000 } }));
    const { spent } = agents.credits.account;
    const cut = failureOf(agents.run('drained', {}, 'k6'));
    await until(() => agents.credits.account.open === 1);
    await agents.service.restart();
    expect(['INTERNAL', 'UNAVAILABLE', 'OUTCOME_UNKNOWN', 'CLIENT_GONE']).toContain((await cut).reason);
    expect((await agents.call('listAgentExecutions', { agent: 'drained' })).items).toMatchObject([
      { status: 'interrupted', charge: 0 },
    ]);
    expect(agents.credits.account).toMatchObject({ spent, open: 0, reserved: 0 });
    await agents.publish(definitionOf('drained', '1'));
    expect((await agents.run('drained', {}, 'k6')).idempotencyReplayed).toBeUndefined();
  });
});
