import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';

const UUID = '[0-9a-f-]{36}';

describe('RunAgent', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents({ env: { RUNS_AT_ONCE: '2' } });
    const itemsSchema = {
      type: 'object',
      required: ['items'],
      properties: { items: { type: 'array', items: { type: 'number' } } },
      additionalProperties: false,
    };
    await agents.publish(
      definitionOf('sum', '{"total": $sum(items)}', {
        argumentsSchema: itemsSchema,
        outputSchema: { type: 'object', properties: { total: { type: 'number' } } },
      }),
    );
    await agents.publish(definitionOf('echo', '$'));
    await agents.publish(definitionOf('metered', '1 + 1', { pricing: { base: 2, max: 5, perUnit: { steps: 0.01 } } }));
    await agents.publish(
      definitionOf('fails', '$error("no such customer")', { pricing: { base: 2, max: 5, perUnit: { steps: 0.01 } } }),
    );
    await agents.publish(
      definitionOf('wrong', '{"total": "much"}', {
        outputSchema: { type: 'object', properties: { total: { type: 'number' } } },
      }),
    );
    await agents.publish(definitionOf('endless', ENDLESS, { limits: { wallMs: 300, maxSteps: 1_000_000_000 } }));
    await agents.publish(definitionOf('long', ENDLESS, { limits: { wallMs: 30_000, maxSteps: 1_000_000_000 } }));
    await agents.publish(definitionOf('free', '1', { pricing: { base: 0 } }));
    await agents.publish(definitionOf('expensive', '1', { pricing: { base: 5_000 } }));
    await agents.publish(definitionOf('conversational', '1', { kind: 'ConversationalAgent' }));
    await agents.publish(definitionOf('interactive', '1', { interactiveTools: ['browser'] }));
    const { argumentsSchema, ...bare } = definitionOf('bare', '"ran"');
    await agents.publish(bare);
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('draft', '1')) });
  });
  afterAll(() => agents.service.stop());
  const spent = () => agents.credits.account.spent / 1e6;
  const executionOf = async (id: string) => (await agents.call('getAgentExecution', { id })).agentExecution;
  const failureOf = (promise: Promise<unknown>) =>
    promise.then(
      () => {
        throw new Error('it succeeded');
      },
      (error: { reason: string; message: string; facts: Record<string, string>; headers: object; details: object[] }) =>
        error,
    );

  it('keeps what an agent with a trace writes, in its answer and its execution, also when it fails', async () => {
    const source = 'function run({ fail }) { console.log("got", fail); if (fail) throw "no"; return 1; }';
    const runtime = { type: 'script', language: 'javascript', source };
    await agents.publish(definitionOf('traced', '', { runtime, trace: true }));
    await agents.publish(definitionOf('untraced', '', { runtime }));
    const message = (text: string) => ({ role: 'agent', parts: [{ type: 'text', text }] });
    expect((await agents.run('traced', { fail: false })).messages).toEqual([message('got false')]);
    expect((await agents.run('untraced', { fail: false })).messages).toEqual([]);
    await expect(agents.run('traced', { fail: true })).rejects.toMatchObject({ reason: 'AGENT_FAILED', message: 'no' });
    const { items } = await agents.call('listAgentExecutions', { agent: 'traced', status: 'failed' });
    const { agentExecution } = await agents.call('getAgentExecution', { id: items[0]!.id });
    expect(agentExecution).toMatchObject({ status: 'failed', messages: [message('got true')] });
  });

  it('answers every field of the contract, charges the fixed price and leaves nothing reserved', async () => {
    const before = spent();
    const answer = await agents.run('sum', { items: [1, 2, 3.5] });
    expect(answer).toEqual({
      success: true,
      creditsCharged: '1',
      sessionId: expect.stringMatching(`^api-${UUID}$`),
      agentExecutionId: expect.stringMatching(`^${UUID}$`),
      agent: 'sum',
      output: '{"total":6.5}',
      messages: expect.any(Array),
      idempotencyReplayed: undefined,
    });
    expect(spent() - before).toBe(1);
    expect(agents.credits.account).toMatchObject({ reserved: 0, open: 0 });
  });

  it('returns any JSON value unchanged', async () => {
    for (const value of [null, '', 'ünï\u{1f600}', 0, -1.5e-7, false, [], [[null]], { a: { b: [{}] }, '': null }]) {
      expect(JSON.parse((await agents.run('echo', value)).output)).toEqual(value);
    }
  });

  it('charges base and metered steps up to max', async () => {
    const before = spent();
    const { agentExecutionId } = await agents.run('metered', {});
    const execution = await executionOf(agentExecutionId);
    const { steps } = JSON.parse(execution?.usage ?? '') as { steps: number };
    expect(steps).toBeGreaterThan(0);
    expect(execution?.charge).toBeCloseTo(2 + steps * 0.01, 6);
    expect(spent() - before).toBeCloseTo(2 + steps * 0.01, 6);
  });

  describe('400', () => {
    it.each([
      [{ args: '{}' }, '/agentName'],
      [{ agentName: '', args: '{}' }, '/agentName'],
      [{ agentName: 'echo' }, '/args'],
      [{ agentName: 'echo', args: JSON.stringify('x'.repeat(262_143)) }, '/args'],
      [{ agentName: 'echo', args: '{' }, '/args'],
    ])('names the faulty field of the body', async (request, path) => {
      const failure = await failureOf(agents.call('runAgent', request));
      expect(failure.details).toMatchObject([{ path }]);
    });
    it('names every violation of the argument schema', async () => {
      const failure = await failureOf(agents.run('sum', { items: ['a', 'b'], more: 1 }));
      expect(failure).toMatchObject({ reason: 'INVALID_ARGS' });
      expect(failure.details.map((detail) => (detail as { path: string }).path).sort()).toEqual([
        '/args/items/0',
        '/args/items/1',
        '/args/more',
      ]);
    });
    it('takes only {} and null for an agent without a schema', async () => {
      expect((await agents.run('bare', {})).success && (await agents.run('bare', null)).success).toBe(true);
      for (const args of [0, '', [], { a: 1 }])
        expect(await failureOf(agents.run('bare', args))).toMatchObject({ reason: 'INVALID_ARGS' });
    });
    it.each([
      ['{"a":1,"a":2}', '/args/a'],
      ['{"a":[9007199254740993]}', '/args/a/0'],
      ['{"a":"\\ud800"}', '/args/a'],
      ['{"__proto__":1}', '/args/__proto__'],
    ])('rejects args that the gateway would not have let through: %s', async (args, path) => {
      for (const running of [agents.operate, agents.call])
        expect(await failureOf(running('runAgent', { agentName: 'echo', args }))).toMatchObject({
          reason: 'INVALID_REQUEST',
          details: [{ path, message: expect.any(String) }],
        });
    });
    it.each(['conversational', 'interactive'])('does not run %s', async (name) => {
      expect(await failureOf(agents.run(name, {}))).toMatchObject({ reason: 'AGENT_NOT_RUNNABLE' });
    });
    it.each(['', 'x'.repeat(256)])('rejects an idempotency key that is empty or too long', async (key) => {
      expect(await failureOf(agents.run('echo', {}, key))).toMatchObject({ reason: 'INVALID_REQUEST' });
    });
  });

  it('answers the same 404 for unknown agents, unpublished ones and those of another organization', async () => {
    const ofAnotherOrganization = failureOf(
      agents.call('runAgent', { agentName: 'echo', args: '{}' }, { principal: serverToken(newId()) }),
    );
    const failures = await Promise.all([
      failureOf(agents.run('missing', {})),
      failureOf(agents.run('draft', {})),
      ofAnotherOrganization,
    ]);
    expect(
      new Set(
        failures.map(({ reason, message, facts, details }) => JSON.stringify({ reason, message, facts, details })),
      ).size,
    ).toBe(1);
    expect(failures[0]?.reason).toBe('NOT_FOUND');
  });

  it('answers 402 with the credits needed and available, and leaves no execution, key or reservation', async () => {
    const failure = await failureOf(agents.run('expensive', {}, 'expensive-1'));
    expect(failure).toMatchObject({
      reason: 'INSUFFICIENT_CREDITS',
      facts: { needed: 5_000, available: agents.credits.account.available / 1e6 },
    });
    expect((await agents.call('listAgentExecutions', { agent: 'expensive' })).items).toEqual([]);
    expect(agents.credits.account.reserved).toBe(0);
    expect((await agents.run('echo', {}, 'expensive-1')).idempotencyReplayed).toBeUndefined();
  });

  it('answers 429 over the limit of open runs, free ones too, and cancels a run whose client disconnects', async () => {
    const aborter = new AbortController();
    const running = [0, 1].map(() =>
      failureOf(agents.call('runAgent', { agentName: 'long', args: '{}' }, { signal: aborter.signal })),
    );
    await until(() => agents.credits.account.open === 2);
    expect(await failureOf(agents.run('free', {}))).toMatchObject({
      reason: 'TOO_MANY_RUNS',
      headers: { 'Retry-After': '1' },
    });
    aborter.abort();
    await Promise.all(running);
    await until(() => agents.credits.account.open === 0);
    await until(
      async () => (await agents.call('listAgentExecutions', { agent: 'long', status: 'cancelled' })).items.length === 2,
    );
    expect((await agents.run('free', {})).success).toBe(true);
  });

  it('writes equal denials as one entry of the audit trail', async () => {
    await agents.service.runJob('denials');
    const entries = (await agents.events()).filter(({ data }) => data.action === 'request.refused');
    expect(entries.map(({ data }) => data)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          outcome: 'denied',
          code: 'insufficient_credits',
          actor: expect.objectContaining({ name: 'ci token' }),
        }),
        expect.objectContaining({ outcome: 'denied', code: 'too_many_runs' }),
      ]),
    );
  });

  it("records the agent's own failure, charges its metered steps, and answers with both ids", async () => {
    const before = spent();
    const failure = await failureOf(agents.run('fails', {}));
    expect(failure).toMatchObject({
      reason: 'AGENT_FAILED',
      facts: { success: false, sessionId: expect.stringMatching(/^api-/), agentExecutionId: expect.any(String) },
    });
    const execution = await executionOf(failure.facts.agentExecutionId ?? '');
    expect(execution).toMatchObject({ status: 'failed', output: undefined });
    expect(JSON.parse(execution?.error ?? '')).toMatchObject({ code: 'agent_failed' });
    expect(execution?.charge).toBeLessThan(2);
    expect(spent() - before).toBeCloseTo(execution?.charge ?? NaN, 6);
  });

  it('fails a run whose output violates the output schema, and charges nothing at a fixed price', async () => {
    const before = spent();
    const failure = await failureOf(agents.run('wrong', {}));
    expect(failure).toMatchObject({ reason: 'OUTPUT_INVALID', message: expect.stringContaining('/total') });
    expect(spent()).toBe(before);
  });

  it('ends a run at its time limit', async () => {
    const failure = await failureOf(agents.run('endless', {}));
    expect(failure).toMatchObject({ reason: 'RUN_TIMEOUT', facts: { success: false } });
    expect(await executionOf(failure.facts.agentExecutionId ?? '')).toMatchObject({ status: 'timed_out', charge: 0 });
  });

  it('shows a long run as running', async () => {
    const aborter = new AbortController();
    const running = failureOf(agents.call('runAgent', { agentName: 'long', args: '{}' }, { signal: aborter.signal }));
    await until(
      async () => (await agents.call('listAgentExecutions', { agent: 'long', status: 'running' })).items.length === 1,
    );
    aborter.abort();
    await running;
    await until(() => agents.credits.account.open === 0);
  });

  it('answers 503 and records nothing when credits is down', async () => {
    agents.credits.setDown(true);
    const count = (await agents.call('listAgentExecutions', { pageSize: 100 })).items.length;
    expect(await failureOf(agents.run('echo', {}, 'while-down'))).toMatchObject({
      reason: 'UNAVAILABLE',
      facts: {},
      headers: { 'Retry-After': '1' },
    });
    agents.credits.setDown(false);
    expect((await agents.call('listAgentExecutions', { pageSize: 100 })).items).toHaveLength(count);
    expect((await agents.run('echo', {}, 'while-down')).success).toBe(true);
  });

  it('publishes in order: started, finished, audit entry', async () => {
    const { agentExecutionId, sessionId } = await agents.run('echo', {});
    const events = (await agents.events()).filter(
      ({ subject, data }) =>
        subject === `executions/${agentExecutionId}` ||
        (data.target as { id?: string } | null)?.id === agentExecutionId,
    );
    expect(events).toMatchObject([
      {
        type: 'agent.execution.started.v1',
        sequence: 1,
        data: { id: agentExecutionId, sessionId, agent: 'echo', version: 1, status: 'running' },
      },
      {
        type: 'agent.execution.finished.v1',
        sequence: 2,
        data: { status: 'succeeded', charge: 1, actor: { kind: 'server_token', name: 'ci token' } },
      },
      {
        type: 'audit.entry.v1',
        data: {
          action: 'agent.run',
          outcome: 'success',
          changes: { agent: [null, 'echo'], version: [null, 1], charge: [null, 1] },
        },
      },
    ]);
  });
});
