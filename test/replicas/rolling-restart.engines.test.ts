import type { ProcessName } from 'platform/core/processes.ts';
import { failedRequests } from '../support/failed-requests.ts';
import { NAMES, openLastingRuns, PATIENT, type LastingRuns } from '../support/lasting-runs.ts';
import { startLoad, type Load } from '../support/load.ts';
import { LOAD_AGENTS } from '../support/load-settings.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { askOtherGateway } from '../support/other-gateway.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const CLIENTS = 4;
const ACKNOWLEDGED = 20;
const LONG_MS = 600_000;

describe('two replicas of everything under load', () => {
  let stack: Stack;
  let lastingRuns: LastingRuns;
  let tenant: Tenant;
  let load: Load;
  beforeAll(async () => {
    stack = await startStack({ env: PATIENT });
    lastingRuns = await openLastingRuns(stack, ACKNOWLEDGED);
  });
  afterAll(async () => {
    await lastingRuns.close();
    await stack.stop();
  });
  beforeEach(async () => {
    tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    await lastingRuns.prepare(tenant);
    load = await startLoad({
      baseUrl: stack.baseUrls,
      token: tenant.token,
      clients: CLIENTS,
      ask: askOtherGateway(stack.baseUrls),
    });
    await load.untilAcknowledged(ACKNOWLEDGED);
  });

  const failed = () => failedRequests(load, stack.outputs());

  it(
    'are restarted one after the other during runs that last as long: no request fails, and nothing is lost',
    async () => {
      expect(stack.launchers).toHaveLength(2);
      for (const name of NAMES) for (const replica of [0, 1]) await lastingRuns.restart(load, name, replica);
      await load.stop();
      expect(failed()).toEqual([]);
      printCounts('a rolling restart of ten processes', await expectNothingLost(stack, tenant, load));
    },
    LONG_MS,
  );

  it.each<ProcessName>(['auth', 'memory'])(
    'kill -9 of %s costs only requests that were in flight and may not be repeated',
    async (name) => {
      await stack.killAndAwait(name);
      await load.untilAcknowledged(ACKNOWLEDGED);
      await load.stop();
      // each client has one request in flight
      expect(failed().length).toBeLessThanOrEqual(CLIENTS);
      expect(failed().filter(({ status }) => status !== 504)).toEqual([]);
      printCounts(`kill -9 of ${name}`, await expectNothingLost(stack, tenant, load));
    },
    LONG_MS,
  );
});
