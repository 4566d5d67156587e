import { isDeepStrictEqual } from 'node:util';
import { newId } from 'platform/core/ids.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { auditTrailOf, executionsOf } from '../support/organization-records.ts';
import { startGatewayToFirstAgents, type StackProcess } from '../support/stack-process.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { LOAD_AGENTS, SHORT_LEASES, SLOW, SLOW_ARGS } from '../support/load-settings.ts';
import { startLoad } from '../support/load.ts';

const CLIENTS = 6;
const ACKNOWLEDGED = 40;
/** A machine that stalls may lose the answer of a run that no kill touched, but hardly in each attempt. */
const ATTEMPTS = 3;
const LONG_MS = 600_000;

/**
 * The process to kill, and what becomes of two slow runs on the first replica of agents, one without and one with an
 * idempotency key: [status of the reply, status of the execution]. `slowness` multiplies the duration of runs that must
 * not end before the kill.
 */
const KILLS: {
  name: ProcessName;
  slowness?: number;
  plain: [number | undefined, string];
  keyed: [number | undefined, string];
}[] = [
  { name: 'gateway', slowness: 2, plain: [undefined, 'interrupted'], keyed: [undefined, 'succeeded'] },
  { name: 'auth', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
  { name: 'agents', slowness: 2, plain: [504, 'interrupted'], keyed: [504, 'interrupted'] },
  { name: 'memory', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
  { name: 'credits', plain: [200, 'succeeded'], keyed: [200, 'succeeded'] },
];

describe('kill -9 of a process of the first replica during runs, under load; the launcher restarts it', () => {
  let stack: Stack;
  let gateway: StackProcess;
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    gateway = await startGatewayToFirstAgents(stack);
  });
  afterAll(async () => {
    gateway.child.kill('SIGTERM');
    await stack.stop();
  });

  it.each(KILLS)(
    '$name: nothing acknowledged is lost or charged twice, no reservation is left, each event is stored once',
    async ({ name, slowness = 1, ...expected }) => {
      for (let attempt = 1; ; attempt++) {
        const { counts, found, wasKilled } = await killDuringRuns(name, slowness);
        if (attempt < ATTEMPTS && !(wasKilled && isDeepStrictEqual(found, expected))) continue;
        expect({ ...found, wasKilled }).toEqual({ ...expected, wasKilled: true });
        return printCounts(`kill -9 of ${name}`, counts);
      }
    },
    LONG_MS,
  );

  /** @returns what the clients counted, and what became of the two slow runs */
  async function killDuringRuns(name: ProcessName, slowness: number) {
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);
    const at = name === 'gateway' ? stack.baseUrl : `http://${gateway.address}`;
    const args = { n: slowness * SLOW_ARGS.n };
    const slow = Promise.all([load.run(SLOW, args, undefined, at), load.run(SLOW, args, newId(), at)]);
    // on a machine that stalls, one may have ended before the other has begun: another attempt then
    let ended = false;
    void slow.then(() => (ended = true));
    await eventually(async () => ended || (await running(tenant)) === 2);

    const wasKilled = !ended;
    if (wasKilled) await load.pauseDuring(stack.killAndAwait(name));
    await load.untilAcknowledged(ACKNOWLEDGED);
    const [plain, keyed] = await slow;
    await load.stop();

    const counts = await expectNothingLost(stack, tenant, load);
    const statusOf = await executionStatuses(stack, tenant);
    const found = {
      plain: [plain.status, statusOf(plain.requestId)],
      keyed: [keyed.status, statusOf(keyed.requestId)],
    };
    return { counts, found, wasKilled };
  }
});

const running = async (tenant: Tenant): Promise<number> =>
  (await tenant.request('GET', `/api/agent/executions?agent=${SLOW}&status=running`)).body.items.length;

/** @returns a function from a request id to the status of the execution that the audit trail names for it */
async function executionStatuses(stack: Stack, tenant: Tenant): Promise<(requestId: string) => string | undefined> {
  const executions = new Map((await executionsOf(stack, tenant)).map(({ id, status }) => [id, status]));
  const ids = new Map(
    (await auditTrailOf(stack, tenant, 'agent.run')).map(({ requestId, targetId }) => [requestId, targetId as string]),
  );
  return (requestId) => executions.get(ids.get(requestId) as string);
}
