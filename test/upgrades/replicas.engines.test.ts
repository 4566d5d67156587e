import type { ProcessName } from 'platform/core/processes.ts';
import { failedRequests } from '../support/failed-requests.ts';
import { expectNothingLost, printCounts, type Counts } from '../support/nothing-lost.ts';
import { startLoad, type Load } from '../support/load.ts';
import { LOAD_AGENTS, LONG_ENGINE_TIMEOUTS, SHORT_LEASES } from '../support/load-settings.ts';
import { REPOSITORY } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { CALLED_FIRST, startFleet, type Fleet } from './fleet.ts';
import { layOutPrevious, PREVIOUS } from './release.ts';

const CREDITS = 1_000_000;
const CLIENTS = 2;
const EVERY_KIND = CLIENTS * 6;

describe(`two replicas of everything, of release ${PREVIOUS}, on shared servers`, () => {
  const previous = layOutPrevious();
  let fleet: Fleet;
  let tenant: Tenant;
  let load: Load;
  let counts: Counts;
  beforeAll(async () => {
    fleet = await startFleet(previous.root, { ...SHORT_LEASES, ...LONG_ENGINE_TIMEOUTS });
    tenant = await fleet.tenant({ credits: CREDITS, agents: LOAD_AGENTS });
    load = await startLoad({ baseUrl: fleet.inService, token: tenant.token, clients: CLIENTS, ask: fleet.ask });
    await load.untilAcknowledged(EVERY_KIND);
    for (const name of CALLED_FIRST) {
      await replace([name], 0, REPOSITORY);
      await replace([name], 1, REPOSITORY);
    }
    // back again: callers of the release before meet services of this one
    await replace(CALLED_FIRST.toReversed(), 0, previous.root);
    await replace(CALLED_FIRST.toReversed(), 1, previous.root);
    await load.stop();
    counts = await expectNothingLost(fleet, tenant, load);
    printCounts('two replicas, both ways', counts);
  });
  afterAll(async () => {
    await fleet.stop();
    previous.remove();
  });

  /** Under load: what a process has begun, it ends. */
  async function replace(names: readonly ProcessName[], replica: number, root: string): Promise<void> {
    await Promise.all(names.map((name) => fleet.drain(name, replica)));
    await Promise.all(names.map((name) => fleet.start(name, replica, root)));
    await Promise.all(names.map((name) => fleet.untilCalled(tenant, name, replica)));
    await load.untilAcknowledged(EVERY_KIND);
  }

  it('are upgraded one by one and rolled back under load without a failed request, and lose nothing', () => {
    expect(failedRequests(load, [fleet.warnings()])).toEqual([]);
    expect(counts).toMatchObject({ missing: 0, doubled: 0, reservationsLeft: 0 });
  });
});
