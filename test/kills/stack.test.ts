import { newId } from 'platform/core/ids.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { descendantsOf } from '../support/process-tree.ts';
import { startLoad, type Load } from '../support/load.ts';
import { LOAD_AGENTS, SHORT_LEASES, SLOW, SLOW_ARGS } from '../support/load-settings.ts';

const CLIENTS = 8;
const ACKNOWLEDGED = 250;
const LONG_MS = 600_000;

const withDescendants = (launcher: number): number[] => [launcher, ...descendantsOf(launcher)];

describe('kill -9 of the whole stack under load, then a new start on the same folder', () => {
  let first: Stack;
  let stack: Stack;
  const earlier: { tenant: Tenant; load: Load }[] = [];
  beforeAll(async () => {
    first = stack = await startStack({ env: SHORT_LEASES });
  });
  afterAll(async () => {
    await stack.stop();
    await first.stop();
  });

  it.each([
    { target: 'all six processes at once', pidsToKill: withDescendants },
    { target: 'the launcher, whose children end by themselves', pidsToKill: (launcher: number) => [launcher] },
  ])(
    '$target: nothing acknowledged is lost or charged twice, no reservation is left, each event is stored once',
    async ({ target, pidsToKill }) => {
      const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
      const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
      await load.untilAcknowledged(ACKNOWLEDGED);
      const slow = Promise.all([load.run(SLOW, SLOW_ARGS), load.run(SLOW, SLOW_ARGS, newId())]);
      await load.untilAcknowledged(CLIENTS);

      const launchers = stack.launchers.map(({ pid }) => pid as number);
      const pids = launchers.flatMap(withDescendants);
      for (const pid of launchers.flatMap(pidsToKill)) process.kill(pid, 'SIGKILL');
      const stopped = load.stop();
      await eventually(() => pids.every(isGone));
      await Promise.all([stopped, slow]);

      if (stack !== first) stack.operator.close();
      stack = await startStack({ env: SHORT_LEASES, folder: first.folder });
      printCounts(`kill -9 of ${target}`, await expectNothingLost(stack, tenant, load));
      for (const each of earlier)
        printCounts('an organization of an earlier kill', await expectNothingLost(stack, each.tenant, each.load));
      earlier.push({ tenant, load });
    },
    LONG_MS,
  );
});
