import { failedRequests } from '../support/failed-requests.ts';
import { expectNothingLost, printCounts, type Counts } from '../support/nothing-lost.ts';
import { startLoad, type Load } from '../support/load.ts';
import { LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';
import { REPOSITORY } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { CALLED_FIRST, startFleet, type Fleet } from './fleet.ts';
import { layOutPrevious, PREVIOUS } from './release.ts';

const CREDITS = 1_000_000;
const CLIENTS = 2;
/** Every kind of request of the load, of each client. */
const EVERY_KIND = CLIENTS * 12;

describe(`one process after the other of release ${PREVIOUS}, on its data folder`, () => {
  const previous = layOutPrevious();
  let fleet: Fleet;
  let tenant: Tenant;
  let load: Load;
  let counts: Counts;
  beforeAll(async () => {
    fleet = await startFleet(previous.root, SHORT_LEASES);
    tenant = await fleet.tenant({ credits: CREDITS, agents: LOAD_AGENTS });
    load = await startLoad({ baseUrl: fleet.inService, token: tenant.token, clients: CLIENTS, ask: fleet.ask });
    await load.untilAcknowledged(EVERY_KIND);
    // the new gateway with old services, each old service in turn with new ones, then the old gateway with new services
    await exchange('gateway', REPOSITORY);
    for (const service of CALLED_FIRST) if (service !== 'gateway') await exchange(service, REPOSITORY);
    await exchange('gateway', previous.root);
    // back again, on the files that the new release has written
    for (const service of CALLED_FIRST.toReversed()) if (service !== 'gateway') await exchange(service, previous.root);
    await load.stop();
    counts = await expectNothingLost(fleet, tenant, load);
    printCounts('one replica, both ways', counts);
  });
  afterAll(async () => {
    await fleet.stop();
    previous.remove();
  });

  /** Exchanges a process while all clients wait, since nobody serves meanwhile. */
  async function exchange(name: (typeof CALLED_FIRST)[number], root: string): Promise<void> {
    const exchanged = Promise.withResolvers<void>();
    void load.pauseDuring(exchanged.promise, 'all');
    await load.untilAllClientsWait();
    await fleet.drain(name, 0);
    await fleet.start(name, 0, root);
    await fleet.untilCalled(tenant, name, 0);
    exchanged.resolve();
    await load.untilAcknowledged(EVERY_KIND);
  }

  it('serves every request in every combination, and loses nothing', () => {
    expect(failedRequests(load, [fleet.warnings()])).toEqual([]);
    expect(counts).toMatchObject({ missing: 0, doubled: 0, reservationsLeft: 0 });
  });
});
