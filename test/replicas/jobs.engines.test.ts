import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { newId } from 'platform/core/ids.ts';
import { identityFilesOf, keyFolderOf } from 'platform/rpc/keys.ts';
import { serverToken } from 'platform/service/testing.ts';
import { pause } from '../../dev-servers/src/pause.ts';
import { startMongo, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { ACTIVE } from '../../services/agents/src/executions/rules.ts';
import { EXECUTIONS } from '../../services/agents/src/executions/store.ts';
import { program as agents } from '../../services/agents/src/service.ts';
import { program as auth } from '../../services/auth/src/service.ts';
import { program as credits } from '../../services/credits/src/service.ts';
import { program as memory } from '../../services/memory/src/service.ts';
import { USAGE } from '../../services/agents/src/usage/store.ts';
import { update, type PlatformStore } from 'platform/store/store.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad } from '../support/load.ts';
import { retryWhileUnavailable } from '../support/retry-while-unavailable.ts';
import { LOAD_AGENTS, SHORT_LEASES, LONG_ENGINE_TIMEOUTS, SLOW, SLOW_ARGS } from '../support/load-settings.ts';
import { executionsOf, ledgerOf } from '../support/organization-records.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { openJobsWithoutLease, type JobsWithoutLease } from './jobs-without-lease.ts';

const CLIENTS = 4;
const ACKNOWLEDGED = 40;
const SLOW_RUNS = 6;
/** Long runs, so that they do not end before the processes are paused. */
const ARGS = { n: 4 * SLOW_ARGS.n };
const ABANDONED = 20;

const LONG_MS = 600_000;

describe('jobs that run at once on four replicas, two of them without a lease', () => {
  let mongo: PrivateServer;
  let stack: Stack;
  let unleased: Record<'agents' | 'auth' | 'credits' | 'memory', JobsWithoutLease[]>;
  beforeAll(async () => {
    mongo = await startMongo();
    // relays run rarely by themselves: events are published by rounds of this test, or when a service wakes its relay.
    // The lease of a run is long enough that no other process takes the run over while one settles it.
    stack = await startStack({
      env: {
        ...SHORT_LEASES,
        ...LONG_ENGINE_TIMEOUTS,
        RUN_LEASE_MS: '5000',
        RESERVATION_TTL_MS: '15000',
        RELAY_INTERVAL_MS: '60000',
        MONGODB_URL: mongo.url,
      },
    });
    const two = async (open: () => Promise<JobsWithoutLease>) => [await open(), await open()];
    unleased = {
      agents: await two(() => openJobsWithoutLease(agents, stack)),
      auth: await two(() => openJobsWithoutLease(auth, stack)),
      credits: await two(() => openJobsWithoutLease(credits, stack)),
      memory: await two(() => openJobsWithoutLease(memory, stack)),
    };
  });
  afterAll(async () => {
    for (const each of Object.values(unleased).flat()) await each.close();
    await stack.stop();
    await mongo.stop();
  });

  /** A round that fails is tried again, as jobs are: a paused process may hold locks for longer than a timeout. */
  const round = (run: () => Promise<number>): Promise<number> =>
    retryWhileUnavailable(run, ['UNAVAILABLE', 'OUTCOME_UNKNOWN']);

  /**
   * Runs the job on all replicas at once.
   * @returns items known to be done: by the replicas with a lease, then by each other one
   */
  const runEverywhere = (service: keyof typeof unleased, job: string): Promise<number[]> =>
    Promise.all([
      round(async () => (await stack.runJob(service, job)).count),
      ...unleased[service].map((one) => round(() => one.run(job))),
    ]);
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

  /** Makes reservations that nobody settles, so that only the sweepers can end them. */
  async function makeAbandonedReservations(organizationId: string): Promise<void> {
    const keys = keyFolderOf(stack.folder);
    const identity = openIdentity({ name: 'agents', ...identityFilesOf(keys, 'agents') });
    const { call, close } = openConnection({
      address: stack.env.CREDITS_ADDRESS as string,
      audience: 'credits',
      identity,
    });
    const reserve = () =>
      clientOf(CreditsServiceService, call).reserve(
        { id: newId(), amountMicros: 1, ttlMs: 2_000, maxOpen: 0 },
        { principal: serverToken(organizationId), requestId: newId() },
      );
    await Promise.all(Array.from({ length: ABANDONED }, reserve));
    close();
  }

  /**
   * Pauses the processes between two heartbeats of the runs, which come only after a third of the lease. One that is
   * paused within a heartbeat, while it counts usage or while it marks runs as settled, because the machine stalls
   * meanwhile, would keep the locks of its transaction, which the stand-in for MongoDB never ends: then they go on
   * until their next heartbeats.
   * @returns the ids of the runs that have not ended
   */
  async function pauseBetweenHeartbeats(pids: readonly number[], platformStore: PlatformStore): Promise<string[]> {
    const active = () => platformStore.find(EXECUTIONS, { status: { in: ACTIVE } });
    for (;;) {
      const before = new Map((await active()).map(({ _id, leaseUntil }) => [_id, leaseUntil]));
      await eventually(async () => (await active()).every(({ _id, leaseUntil }) => leaseUntil !== before.get(_id)));
      await Promise.all(pids.map(pause));
      const ids = (await active()).map(({ _id }) => _id);
      const unsettled = await platformStore.find(EXECUTIONS, { leaseUntil: { gt: 0 } });
      const counters = await platformStore.find(USAGE, {});
      const touched = [
        ...unsettled.map(({ _id }) => update(EXECUTIONS, { _id }, { increment: { bytes: 0 } })),
        ...counters.map(({ _id }) => update(USAGE, { _id }, { increment: { bytes: 0 } })),
      ];
      const isLocked = await platformStore.apply(touched).then(
        () => false,
        () => true,
      );
      if (!isLocked) return ids;
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
  }

  it(
    'end each lost run once, expire each reservation once, and publish each event once',
    async () => {
      const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
      const load = await startLoad({ baseUrl: stack.baseUrl, token: tenant.token, clients: CLIENTS });
      let [loading, relayed] = [true, 0];
      const relaying = (async () => {
        while (loading)
          for (const service of ['agents', 'memory', 'credits', 'auth'] as const)
            relayed += sum(await runEverywhere(service, 'relay'));
      })();
      relaying.catch(() => undefined);
      await load.untilAcknowledged(ACKNOWLEDGED);
      loading = false;
      await relaying;
      await load.stop();

      let reaped = 0;
      let lost: string[] = [];
      const slow: Promise<unknown>[] = [];
      const slowRuns = async () => (await executionsOf(stack, tenant)).filter(({ agent }) => agent === SLOW);
      const agentPids = stack.pidsOf('agents');
      const [{ platformStore }] = unleased.agents as [JobsWithoutLease];
      try {
        // while the machine stalls, runs may end before the processes are paused
        while (lost.length === 0) {
          for (const pid of agentPids) process.kill(pid, 'SIGCONT');
          for (let n = 0; n < SLOW_RUNS; n++) slow.push(load.run(SLOW, ARGS, newId()));
          await eventually(async () => (await slowRuns()).length === slow.length);
          lost = await pauseBetweenHeartbeats(agentPids, platformStore);
        }
        await eventually(async () => {
          reaped += sum(await Promise.all(unleased.agents.map((one) => round(() => one.run('reaper')))));
          return (await platformStore.count(EXECUTIONS, { status: { in: ACTIVE } })) === 0;
        });
      } finally {
        for (const pid of agentPids) process.kill(pid, 'SIGCONT');
      }
      // the resumed processes have lost their leases: their writes fail
      await Promise.all(slow);
      // not counted by `reaped`: a run may be ended by a round whose outcome stays unknown, or be ended by two reapers,
      // one of which stalls between taking it over and ending it
      const interrupted = (await slowRuns()).filter(({ status }) => status === 'interrupted');
      expect(interrupted.map(({ id }) => id).sort()).toEqual(lost.sort());

      await makeAbandonedReservations(tenant.organizationId);
      const expiries = async () =>
        (await ledgerOf(stack, tenant)).rows.filter(({ kind }) => kind === 'EXPIRE').map(({ id }) => id);
      const before = await expiries();
      let expired = 0;
      await eventually(async () => {
        expired += sum(await runEverywhere('credits', 'sweeper'));
        return (await ledgerOf(stack, tenant)).account.openReservations === 0;
      });
      const after = await expiries();
      expect(new Set(after).size).toBe(after.length);
      expect(after.length).toBeGreaterThan(before.length);
      // a round whose outcome is unknown counts nothing
      expect(expired).toBeLessThanOrEqual(after.length - before.length);

      process.stdout.write(
        `${reaped} runs reaped, ${expired} reservations expired, ${relayed} events relayed under load\n`,
      );
      for (const service of ['agents', 'memory', 'credits', 'auth'] as const) await runEverywhere(service, 'relay');
      printCounts('jobs without leases', await expectNothingLost(stack, tenant, load));
    },
    LONG_MS,
  );
});
