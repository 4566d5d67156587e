import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { anyId, expectError } from '../support/expect-error.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, untilAvailable, type Reply } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const ENDLESS = '( $again := function($n) { $again($n + 1) }; $again(0) )';
const AGENTS = [
  expressionAgent('hello', '{ "hello": $ }'),
  expressionAgent('dear', '{}', { pricing: { base: 3, max: 5, perUnit: { steps: 0 } } }),
  expressionAgent('broken', '{ "a": $number("sesame") }', { pricing: { base: 1, max: 1 } }),
  expressionAgent('liar', '{ "a": 1 }', { outputSchema: { type: 'object', required: ['promised'] } }),
  expressionAgent('wide', '{ "a": $ & $ & $ }'),
  expressionAgent('quick', ENDLESS, { limits: { wallMs: 200, maxSteps: 1_000_000_000 } }),
  expressionAgent('second', ENDLESS, { limits: { wallMs: 6_000, maxSteps: 1_000_000_000 } }),
  expressionAgent('slow', ENDLESS, { limits: { wallMs: 60_000, maxSteps: 1_000_000_000 } }),
];

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ env: { RUNNERS: '1', RUNNERS_MAX: '1', RUN_QUEUE_LIMIT: '1', RUNS_AT_ONCE: '2' } });
});
afterAll(() => stack.stop());

const run = (tenant: Tenant, agentName: string, args: unknown = {}, key?: string): Promise<Reply> =>
  tenant.request('POST', '/api/agent/run', { agentName, args }, key === undefined ? {} : { 'Idempotency-Key': key });
const executionsOf = async (
  tenant: Tenant,
  query = '',
): Promise<{ id: string; status: string; charge: number | null }[]> =>
  (await tenant.request('GET', `/api/agent/executions${query}`)).body.items;
const credits = () => stack.operator.client(CreditsServiceService, 'credits');
const ledgerOf = async (tenant: Tenant) =>
  (await credits().listLedgerRows({ pageSize: 100, beforeSequence: 0 }, stack.operator.as(tenant.organizationId))).rows;
const availableTo = async (tenant: Tenant) =>
  (await credits().getBalance({}, stack.operator.as(tenant.organizationId))).account!.availableMicros / 1e6;
const withoutRequestId = ({ body }: Reply) => ({ ...body, requestId: undefined });

/** Starts a run and waits for its record. It is cancelled when its connection is dropped, unless it has a key. */
async function startRun(
  tenant: Tenant,
  agentName: string,
  key?: string,
  at = stack.baseUrl,
): Promise<{ drop(): void }> {
  const before = (await executionsOf(tenant)).length;
  const client = new AbortController();
  const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key };
  void untilAvailable(() =>
    request(at, 'POST', '/api/agent/run', {
      token: tenant.token,
      body: { agentName, args: {} },
      headers,
      signal: client.signal,
    }),
  ).catch(() => undefined);
  await eventually(async () => (await executionsOf(tenant)).length > before);
  return { drop: () => client.abort() };
}
const allEnded = (tenant: Tenant) =>
  eventually(async () => (await executionsOf(tenant)).every(({ status }) => !['queued', 'running'].includes(status)));

describe('POST /api/agent/run', () => {
  describe('402', () => {
    let poor: Tenant;
    beforeAll(async () => {
      poor = await stack.tenant({ credits: 4, agents: AGENTS });
    });

    it('names the needed and the available credits', async () => {
      expectError(await run(poor, 'dear'), 402, 'insufficient_credits', { needed: 5, available: 4 });
    });

    it('leaves no execution and no ledger row', async () => {
      await run(poor, 'dear');
      expect([
        await executionsOf(poor),
        (await ledgerOf(poor)).map(({ kind }) => kind),
        await availableTo(poor),
      ]).toEqual([[], ['GRANT'], 4]);
    });

    it('is recorded in the audit trail', async () => {
      await run(poor, 'dear');
      await stack.runJob('agents', 'denials');
      const auth = stack.operator.client(AuthServiceService, 'auth');
      const codes = await eventually(async () => {
        const { entries } = await auth.listAuditEntries(
          { pageSize: 100, beforeId: '', action: '' },
          stack.operator.as(poor.organizationId),
        );
        return entries.find(({ code }) => code === 'insufficient_credits');
      });
      expect(codes).toMatchObject({ outcome: 'denied', actorKind: 'server_token', actorName: 'tests' });
    });

    it('leaves the idempotency key free for any body', async () => {
      const [first, second] = [newId(), newId()];
      expect([(await run(poor, 'dear', {}, first)).status, (await run(poor, 'dear', {}, second)).status]).toEqual([
        402, 402,
      ]);
      await credits().grant(
        { id: newId(), amountMicros: 10_000_000, note: '' },
        stack.operator.as(poor.organizationId),
      );
      const replies = [await run(poor, 'dear', {}, first), await run(poor, 'hello', { other: 1 }, second)];
      expect(replies.map(({ status, headers }) => [status, headers.get('idempotency-replayed')])).toEqual([
        [200, null],
        [200, null],
      ]);
    });
  });

  describe('500', () => {
    let tenant: Tenant;
    beforeAll(async () => {
      tenant = await stack.tenant({ credits: 10, agents: AGENTS });
    });
    const ids = (reply: Reply) => ({
      success: false,
      sessionId: reply.body.sessionId,
      agentExecutionId: reply.body.agentExecutionId,
    });

    it('says that the agent failed, with both ids and no internals', async () => {
      const reply = await run(tenant, 'broken');
      expectError(reply, 500, 'agent_failed', {
        success: false,
        sessionId: expect.stringMatching(/^api-/),
        agentExecutionId: anyId,
      });
      expect(reply.text).not.toMatch(/node_modules|\.ts\b|\.js\b|\\n\s+at /);
    });

    it('says that the output violates its schema', async () => {
      const reply = await run(tenant, 'liar');
      expectError(reply, 500, 'output_invalid', ids(reply));
    });

    it('says that the agent failed when its output is over 512 KiB', async () => {
      const reply = await run(tenant, 'wide', 'x'.repeat(200_000));
      expectError(reply, 500, 'agent_failed', ids(reply));
    });

    it('keeps the execution and charges no base price', async () => {
      const { body } = await run(tenant, 'broken');
      const { body: kept } = await tenant.request('GET', `/api/agent/executions/${body.agentExecutionId}`);
      expect(kept).toMatchObject({ status: 'failed', charge: 0, error: { code: 'agent_failed' }, output: null });
      expect(await availableTo(tenant)).toBe(10);
    });
  });

  describe('504', () => {
    it('ends an endless run at its time limit, with both ids, and records the execution as timed out', async () => {
      const tenant = await stack.tenant({ credits: 10, agents: AGENTS });
      const reply = await run(tenant, 'quick');
      expectError(reply, 504, 'run_timeout', {
        success: false,
        sessionId: expect.stringMatching(/^api-/),
        agentExecutionId: anyId,
      });
      expect(await executionsOf(tenant)).toMatchObject([
        { id: reply.body.agentExecutionId, status: 'timed_out', charge: 0 },
      ]);
    });
  });

  describe('Idempotency-Key', () => {
    let tenant: Tenant;
    beforeAll(async () => {
      tenant = await stack.tenant({ credits: 10, agents: AGENTS });
    });

    it('answers a repeat with the first reply and Idempotency-Replayed, and charges once', async () => {
      const key = newId();
      const before = await availableTo(tenant);
      const first = await run(tenant, 'hello', { a: 1, b: [2, 3] }, key);
      const again = await run(tenant, 'hello', { b: [2, 3], a: 1 }, key);
      expect([
        again.status,
        again.body,
        first.headers.get('idempotency-replayed'),
        again.headers.get('idempotency-replayed'),
      ]).toEqual([200, first.body, null, 'true']);
      expect([await availableTo(tenant), Object.keys(again.body).sort()]).toEqual([
        before - 1,
        ['agent', 'agentExecutionId', 'messages', 'output', 'sessionId', 'success'],
      ]);
    });

    it.each([
      ['a failure', 'broken'],
      ['a time-out', 'quick'],
    ])('answers a repeat after %s with the first reply, too', async (_what, agent) => {
      const key = newId();
      const [first, again] = [await run(tenant, agent, {}, key), await run(tenant, agent, {}, key)];
      expect([again.status, withoutRequestId(again), again.headers.get('idempotency-replayed')]).toEqual([
        first.status,
        withoutRequestId(first),
        'true',
      ]);
    });

    it.each<[string, string, unknown]>([
      ['other args', 'hello', { a: 2 }],
      ['another agent', 'dear', { a: 1 }],
    ])('rejects %s under the same key with 422', async (_what, agent, args) => {
      const key = newId();
      await run(tenant, 'hello', { a: 1 }, key);
      expectError(await run(tenant, agent, args, key), 422, 'idempotency_key_reused');
    });

    it('runs two concurrent requests with the same key once', async () => {
      const key = newId();
      const before = (await executionsOf(tenant)).length;
      const replies = await Promise.all([run(tenant, 'hello', {}, key), run(tenant, 'hello', {}, key)]);
      expect(replies.map(({ status }) => status).filter((status) => ![200, 409].includes(status))).toEqual([]);
      expect((await executionsOf(tenant)).length).toBe(before + 1);
    });

    it('answers a repeat during the run with 409 and its execution; the run outlives its client', async () => {
      const key = newId();
      const { drop } = await startRun(tenant, 'second', key);
      drop();
      const [running] = await executionsOf(tenant);
      const reply = await run(tenant, 'second', {}, key);
      expectError(reply, 409, 'run_in_progress', { agentExecutionId: running!.id });
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
      const ended = await eventually(async () => {
        const again = await run(tenant, 'second', {}, key);
        return again.status !== 409 && again;
      });
      expect([ended.status, ended.body.agentExecutionId, ended.headers.get('idempotency-replayed')]).toEqual([
        504,
        running!.id,
        'true',
      ]);
    });

    it.each([
      ['invalid args', 'hello', 'no-object'],
      ['an unknown agent', 'nobody', {}],
    ])('stays free after a request with %s', async (_what, agent, args) => {
      const strict = await stack.tenant({
        credits: 1,
        agents: [expressionAgent('hello', '{}', { argumentsSchema: { type: 'object' } })],
      });
      const key = newId();
      expect((await run(strict, agent, args, key)).status).toBeGreaterThanOrEqual(400);
      expect((await run(strict, 'hello', {}, key)).status).toBe(200);
    });

    it('must have 1 to 255 characters', async () => {
      expect((await run(tenant, 'hello', {}, 'k'.repeat(255))).status).toBe(200);
      expectError(await run(tenant, 'hello', {}, 'k'.repeat(256)), 400, 'invalid_request', {
        at: '/Idempotency-Key',
      });
      expectError(await run(tenant, 'hello', {}, ''), 400, 'invalid_request', { at: '/Idempotency-Key' });
    });
  });
});

// The settings above let a replica evaluate one run while one waits; there is no room for a third.
describe('more runs than there is room for', () => {
  let tenant: Tenant;
  let gateway: StackProcess;
  let drops: (() => void)[];
  beforeAll(async () => {
    tenant = await stack.tenant({ credits: 10, agents: AGENTS });
    gateway = await startGatewayToFirstAgents(stack);
    const start = () => startRun(tenant, 'slow', undefined, `http://${gateway.address}`);
    drops = [(await start()).drop, (await start()).drop];
    // a run enters the queue after its record and its reservation are written
    await eventually(
      async () =>
        (await credits().getBalance({}, stack.operator.as(tenant.organizationId))).account?.openReservations === 2,
    );
  });
  afterAll(() => void gateway.child.kill('SIGTERM'));

  it('429: one run more than an organization may have is rejected and leaves no execution', async () => {
    const reply = await run(tenant, 'hello');
    expectError(reply, 429, 'too_many_runs');
    expect([Number(reply.headers.get('retry-after')) > 0, (await executionsOf(tenant)).length]).toEqual([true, 2]);
  });

  it('503: a run is rejected when the queue is full, and leaves neither execution nor reservation', async () => {
    const other = await stack.tenant({ credits: 10, agents: AGENTS });
    const reply = await request(`http://${gateway.address}`, 'POST', '/api/agent/run', {
      token: other.token,
      body: { agentName: 'hello', args: {} },
    });
    expectError(reply, 503, 'queue_full');
    expect([Number(reply.headers.get('retry-after')) > 0, await executionsOf(other)]).toEqual([true, []]);
    await eventually(async () => (await availableTo(other)) === 10);
  });

  it('a run is cancelled when its client disconnects, and no base price is charged', async () => {
    for (const drop of drops) drop();
    await allEnded(tenant);
    expect((await executionsOf(tenant)).map(({ status, charge }) => [status, charge])).toEqual([
      ['cancelled', 0],
      ['cancelled', 0],
    ]);
    await eventually(async () => (await availableTo(tenant)) === 10);
  });
});
