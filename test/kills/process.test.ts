import { newId } from 'platform/core/ids.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { auditTrailOf, executionsOf } from '../support/organization-records.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { eventually, startStack, type Stack, type Tenant } from '../support/stack.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { LOAD_AGENTS, SHORT_LEASES, SLOW, SLOW_ARGS } from '../support/load-settings.ts';
import { startLoad } from '../support/load.ts';

const CLIENTS = 6;
const ACKNOWLEDGED = 40;

/**
 * What becomes of two slow runs in flight on the first replica of agents, one plain and one with an idempotency key: status of the
 * reply, end of the execution. Those that must not end before the kill last longer.
 */
const PARTS: {
  part: ProcessName;
  lasting?: number;
  plain: [number | undefined, string];
  keyed: [number | undefined, string];
}[] = [
  { part: 'gateway', lasting: 2, plain: [undefined, 'interrupted'], keyed: [undefined, 'succeeded'] },
  { part: 'auth', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
  { part: 'agents', lasting: 2, plain: [504, 'interrupted'], keyed: [504, 'interrupted'] },
  { part: 'memory', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
  { part: 'credits', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
];

describe('kill -9 of one process, of the first replica, in mid-run, under load, started again by the launcher', () => {
  let stack: Stack;
  let beside: StackProcess;
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    beside = await startGatewayToFirstAgents(stack);
  });
  afterAll(async () => {
    beside.child.kill('SIGTERM');
    await stack.stop();
  });

  it.each(PARTS)(
    '$part: nothing acknowledged is missing, nobody is charged twice, no reservation is left, every event is stored once',
    async ({ part, lasting = 1, ...expected }) => {
      const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
      const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
      await load.untilAcknowledged(ACKNOWLEDGED);
      const at = part === 'gateway' ? stack.baseUrl : `http://${beside.address}`;
      const args = { n: lasting * SLOW_ARGS.n };
      const slow = Promise.all([load.run(SLOW, args, undefined, at), load.run(SLOW, args, newId(), at)]);
      await eventually(async () => (await running(tenant)) === 2);

      await load.pauseDuring(stack.killAndAwait(part));
      await load.untilAcknowledged(ACKNOWLEDGED);
      const [plain, keyed] = await slow;
      await load.stop();

      const counts = await expectNothingLost(stack, tenant, load);
      const end = await endsByRequest(stack, tenant);
      expect({ plain: [plain.status, end(plain.requestId)], keyed: [keyed.status, end(keyed.requestId)] }).toEqual(
        expected,
      );
      printCounts(`kill -9 of ${part}`, counts);
    },
  );
});

const running = async (tenant: Tenant): Promise<number> =>
  (await tenant.request('GET', `/api/agent/executions?agent=${SLOW}&status=running`)).body.items.length;

/** End of the execution that a request has made, as the audit trail tells it. */
async function endsByRequest(stack: Stack, tenant: Tenant): Promise<(requestId: string) => string | undefined> {
  const executions = new Map((await executionsOf(stack, tenant)).map(({ id, status }) => [id, status]));
  const ids = new Map(
    (await auditTrailOf(stack, tenant, 'agent.run')).map(({ requestId, targetId }) => [requestId, targetId as string]),
  );
  return (requestId) => executions.get(ids.get(requestId) as string);
}
