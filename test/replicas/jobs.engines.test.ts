import { newId } from 'platform/ids.ts';
import { startMongo, type PrivateServer } from '../../engines/src/private-server.ts';
import { program as agents } from '../../services/agents/src/service.ts';
import { program as auth } from '../../services/auth/src/service.ts';
import { program as credits } from '../../services/credits/src/service.ts';
import { program as memory } from '../../services/memory/src/service.ts';
import { expectNothingLost, say } from '../kills/afterwards.ts';
import { startLoad } from '../kills/load.ts';
import { KILL_AGENTS, KILL_SETTINGS, SLOW, SLOW_ARGS } from '../kills/settings.ts';
import { executionsOf, ledgerOf } from '../organization-records.ts';
import { eventually, startStack, type Stack } from '../stack.ts';
import { openUnleased, type Unleased } from './unleased.ts';

const CLIENTS = 4;
const ACKNOWLEDGED = 40;
const SLOW_RUNS = 6;

/** Nothing here depends on how fast the machine is. */
const PATIENT = { MONGODB_TIMEOUT_MS: '30000', KAFKA_TIMEOUT_MS: '30000', REDIS_TIMEOUT_MS: '30000' };
const LONG_MS = 600_000;

describe('jobs at the same moment on four replicas, two of which no lease holds back', () => {
  let mongo: PrivateServer;
  let stack: Stack;
  let unleased: Record<'agents' | 'auth' | 'credits' | 'memory', Unleased[]>;
  beforeAll(async () => {
    mongo = await startMongo();
    // the relays' own rounds are far apart: what is published is published by a round of the test, or a poke
    stack = await startStack({ env: { ...KILL_SETTINGS, ...PATIENT, RELAY_INTERVAL_MS: '60000', MONGODB_URL: mongo.url } });
    const two = async (open: () => Promise<Unleased>) => [await open(), await open()];
    unleased = {
      agents: await two(() => openUnleased(agents, stack)), auth: await two(() => openUnleased(auth, stack)),
      credits: await two(() => openUnleased(credits, stack)), memory: await two(() => openUnleased(memory, stack)),
    };
  });
  afterAll(async () => {
    for (const each of Object.values(unleased).flat()) await each.close();
    await stack.stop();
    await mongo.stop();
  });

  /** A round of the job on every replica at once; what each of them says to have done, those with a lease together. */
  const everywhere = (service: keyof typeof unleased, job: string): Promise<number[]> =>
    Promise.all([stack.runJob(service, job).then(({ count }) => count), ...unleased[service].map((one) => one.run(job))]);
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

  it('end each lost run once, expire each reservation once, and publish every event: none lost, none doubled', async () => {
    const tenant = await stack.tenant({ credits: 10_000, agents: KILL_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrl, token: tenant.token, clients: CLIENTS });
    let [loading, relayed] = [true, 0];
    const relaying = (async () => {
      while (loading) for (const service of ['agents', 'memory', 'credits', 'auth'] as const) relayed += sum(await everywhere(service, 'relay'));
    })();
    relaying.catch(() => undefined);
    await load.untilAcknowledged(ACKNOWLEDGED);
    loading = false;
    await relaying;
    const slow = Array.from({ length: SLOW_RUNS }, () => load.run(SLOW, SLOW_ARGS, newId()));
    await eventually(async () => (await executionsOf(stack, tenant)).some(({ status }) => status === 'running'));
    const printed = stack.outputs().map(({ length }) => length);
    for (const pid of stack.pidsOf('agents')) process.kill(pid, 'SIGKILL');
    await eventually(() => stack.outputs().every((output, replica) => output.slice(printed[replica]).includes('agents is back')));
    await Promise.all([load.stop(), ...slow]);

    let expired = 0;
    await eventually(async () => {
      expired += sum(await everywhere('credits', 'sweeper'));
      return (await ledgerOf(stack, tenant)).account.openReservations === 0;
    });
    const rowsOf = async (kind: string) => (await ledgerOf(stack, tenant)).rows.filter((row) => row.kind === kind);
    const expiries = await rowsOf('EXPIRE');
    expect(new Set(expiries.map(({ id }) => id)).size).toBe(expiries.length);
    // a reserve expires what is due in its own organization, too
    expect(expired).toBeGreaterThan(0);
    expect(expired).toBeLessThanOrEqual(expiries.length);

    let reaped = 0;
    await eventually(async () => {
      reaped += sum(await everywhere('agents', 'reaper'));
      return !(await executionsOf(stack, tenant)).some(({ status }) => status === 'queued' || status === 'running');
    });
    const interrupted = (await executionsOf(stack, tenant)).filter(({ status }) => status === 'interrupted').length;
    process.stdout.write(`${interrupted} runs interrupted, ${reaped} reaped, ${expired} reservations expired, ${relayed} events relayed under load\n`);
    expect(interrupted).toBeGreaterThan(0);
    // what each run's one end is, its events tell below; a replica that came back reaped at its start, too
    expect(reaped).toBeGreaterThan(0);
    for (const service of ['agents', 'memory', 'credits', 'auth'] as const) await everywhere(service, 'relay');
    say('jobs at the same moment', await expectNothingLost(stack, tenant, load));
  }, LONG_MS);
});
