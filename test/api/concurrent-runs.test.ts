import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { eventsOf } from '../support/event-records.ts';
import { auditTrailOf, executionsOf, expectLedgerConsistent, ledgerOf } from '../support/organization-records.ts';
import { eventually } from 'platform/service/test-end.ts';
import type { Reply } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const CREDITS = 10;
const RUNS = 30;
const run = (tenant: Tenant, key: string): Promise<Reply> =>
  tenant.request('POST', '/api/agent/run', { agentName: 'priced', args: { n: 1 } }, { 'Idempotency-Key': key });

describe(`${RUNS} concurrent runs with credits for ${CREDITS}`, () => {
  const keys = Array.from({ length: RUNS }, () => newId());
  let stack: Stack;
  let tenant: Tenant;
  let replies: Reply[];
  const withStatus = (status: number): Reply[] => replies.filter((reply) => reply.status === status);

  beforeAll(async () => {
    stack = await startStack({ env: { RUNS_AT_ONCE: '30', RUN_QUEUE_LIMIT: '30' } });
    tenant = await stack.tenant({ credits: CREDITS, agents: [expressionAgent('priced', '{"n": n + 1}')] });
    replies = await Promise.all(keys.map((key) => run(tenant, key)));
  });
  afterAll(() => stack.stop());

  it('exactly ten succeed, each with its own execution', () => {
    const succeeded = withStatus(200);
    process.stdout.write(`thirty concurrent runs: ${succeeded.length} succeeded, ${withStatus(402).length} denied\n`);
    expect(succeeded).toHaveLength(CREDITS);
    expect(succeeded.map(({ body }) => body.output)).toEqual(Array.from({ length: CREDITS }, () => ({ n: 2 })));
    expect(new Set(succeeded.map(({ body }) => body.agentExecutionId)).size).toBe(CREDITS);
  });

  it('twenty get 402 with the needed and the available credits', () => {
    expect(withStatus(402)).toHaveLength(RUNS - CREDITS);
    for (const { body } of withStatus(402))
      expect(body).toMatchObject({ code: 'insufficient_credits', needed: 1, available: 0 });
  });

  it('the balance is 0, nothing is reserved, and the ledger adds up row by row', async () => {
    const ledger = await ledgerOf(stack, tenant);
    expectLedgerConsistent(ledger);
    expect(ledger.account).toMatchObject({
      availableMicros: 0,
      reservedMicros: 0,
      spentMicros: CREDITS * 1e6,
      openReservations: 0,
    });
    expect(ledger.rows.map(({ kind }) => kind).sort()).toEqual([
      'GRANT',
      ...Array<string>(CREDITS).fill('RESERVE'),
      ...Array<string>(CREDITS).fill('SETTLE'),
    ]);
  });

  it('only the ten successful runs are recorded', async () => {
    const executions = await executionsOf(stack, tenant);
    expect(executions.map(({ id }) => id).sort()).toEqual(
      withStatus(200)
        .map(({ body }) => body.agentExecutionId)
        .sort(),
    );
    for (const { status, charge } of executions) expect({ status, charge }).toEqual({ status: 'succeeded', charge: 1 });
  });

  it('the audit trail counts the denials', async () => {
    await stack.runJob('agents', 'denials');
    await stack.runJob('agents', 'relay');
    await eventually(async () => (await eventsOf(stack, tenant)).auditCaughtUp);
    const denials = await auditTrailOf(stack, tenant, 'request.refused');
    // denials are counted per minute: there are two entries when a minute ended during the runs
    expect(denials.reduce((sum, { count }) => sum + count, 0)).toBe(RUNS - CREDITS);
    for (const entry of denials)
      expect(entry).toMatchObject({
        outcome: 'denied',
        code: 'insufficient_credits',
        actorKind: 'server_token',
        actorName: 'tests',
      });
  });

  it('a denied run leaves its idempotency key free: with new credits it runs', async () => {
    const key = keys[replies.findIndex(({ status }) => status === 402)] as string;
    await stack.operator
      .client(CreditsServiceService, 'credits')
      .grant({ id: newId(), amountMicros: 1e6, note: '' }, stack.operator.as(tenant.organizationId));
    const again = await run(tenant, key);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, null]);
    expectLedgerConsistent(await ledgerOf(stack, tenant));
  });
});
