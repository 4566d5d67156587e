import {
  startKafka,
  startMongo,
  startRedis,
  type PrivateServer,
  type RedisOptions,
} from '../../dev-servers/src/private-server.ts';
import {
  DEGRADATION_TENANT,
  documentedStatuses,
  expectStatuses,
  repliesToAll,
  requestsOfAllEndpoints,
  type Fault,
} from '../support/degradation.ts';
import { LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad, type Load } from '../support/load.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Reply } from '../support/request.ts';

/** Time-out of a test: load, outage, recovery and the comparison, on a machine that may be busy. */
const TEST_MS = 300_000;
const CLIENTS = 6;
const ACKNOWLEDGED = 30;

type Requests = ReadonlyMap<string, () => Promise<Reply>>;
type EngineName = 'MongoDB' | 'Redis' | 'Kafka';
const ENGINES: EngineName[] = ['MongoDB', 'Redis', 'Kafka'];
/** Longer than every time-out, and than the session of a Kafka consumer. */
const PAUSE_MS = 20_000;
/** Reservations outlive the tests: none may disappear by expiry. */
const LONG_RESERVATIONS = { RESERVATION_TTL_MS: '3600000' };
describe('an engine that fails under load, with two replicas of every service', () => {
  let engines: Record<EngineName, PrivateServer>;
  let redis: PrivateServer<RedisOptions>;
  let stack: Stack;
  beforeAll(async () => {
    const [MongoDB, Redis, Kafka] = await Promise.all([startMongo(), startRedis(), startKafka()]);
    redis = Redis;
    engines = { MongoDB, Redis, Kafka };
    stack = await startStack({
      env: {
        ...SHORT_LEASES,
        ...LONG_RESERVATIONS,
        MONGODB_URL: MongoDB.url,
        REDIS_URL: Redis.url,
        KAFKA_BROKERS: Kafka.url,
      },
    });
  });
  afterAll(async () => {
    await stack.stop();
    for (const engine of Object.values(engines)) await engine.stop();
  });

  /** Runs a load before, during and after a fault, and compares all replies with the stored records. */
  async function expectSurvival(what: string, fault: (load: Load) => Promise<void>): Promise<void> {
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);
    await fault(load);
    await load.untilAcknowledged(ACKNOWLEDGED);
    await load.stop();
    const counts = await expectNothingLost(stack, tenant, load);
    printCounts(what, counts);
    expect(load.sent.filter(({ status }) => ![200, 201, 503, 504].includes(status as number))).toEqual([]);
  }

  /** The engine works again only when all are answered. */
  async function expectRepliesDuring(name: EngineName, fault: Fault, requests: Requests): Promise<void> {
    const expected = documentedStatuses(name, fault);
    const replies = await repliesToAll(requests, expected);
    expectStatuses(replies, expected);
    if (name === 'Redis') expect(replies.get('GET /api/auth/whoami')?.body.credits).toBeNull();
  }

  /** Runs `during` while the engine is down; restores the engine also when that fails. */
  async function whileDown(
    begin: () => Promise<void> | void,
    during: () => Promise<unknown>,
    end: () => Promise<void> | void,
  ): Promise<void> {
    try {
      await begin();
      await during();
    } finally {
      await end();
    }
  }

  /**
   * Takes the engine down until a request of every client has failed, and for at least `lastingMs`. No request needs
   * Kafka: there, until further changes have been acknowledged.
   */
  const outage = (
    fault: Fault,
    name: EngineName,
    begin: () => Promise<void> | void,
    end: () => Promise<void> | void,
    lastingMs = 0,
  ): Promise<void> =>
    expectSurvival(`${name} is ${fault}`, async (load) => {
      const other = await stack.tenant(DEGRADATION_TENANT);
      const [first, second] = [
        await requestsOfAllEndpoints(other, stack.baseUrl),
        await requestsOfAllEndpoints(other, stack.baseUrl),
      ];
      const over = Promise.withResolvers<void>();
      void load.pauseDuring(over.promise);
      const until = performance.now() + lastingMs;
      const during = async (): Promise<void> => {
        await (name === 'Kafka' ? load.untilAcknowledged(ACKNOWLEDGED) : load.untilAllClientsWait());
        void load.pauseDuring(over.promise, 'all');
        await expectRepliesDuring(name, fault, first);
        await load.requestUntil(() => performance.now() >= until);
        await expectRepliesDuring(name, fault, second);
      };
      await whileDown(begin, during, end).finally(over.resolve);
    });

  it.each(ENGINES)(
    'kill -9 of %s: only requests that need it fail, nothing acknowledged is lost, nothing is charged twice',
    (name) =>
      outage(
        'killed',
        name,
        () => engines[name].kill(),
        () => engines[name].restart(),
      ),
    TEST_MS,
  );

  it.each(ENGINES)(
    '%s accepts connections but does not reply: only requests that need it fail, nothing is lost or charged twice',
    (name) =>
      outage(
        'paused',
        name,
        () => engines[name].pause(),
        () => engines[name].resume(),
        PAUSE_MS,
      ),
    TEST_MS,
  );

  const NO_DELAY = { slowSyncMs: 0 };
  it(
    'every sync of the Redis disk takes 200 ms: all requests are still served',
    () =>
      expectSurvival('a sync of the Redis disk takes 200 ms', (load) => {
        const slowDown = async (): Promise<void> => load.pauseDuring(redis.restart({ slowSyncMs: 200 }), 'all');
        return whileDown(
          slowDown,
          () => load.untilAcknowledged(3 * ACKNOWLEDGED),
          () => load.pauseDuring(redis.restart(NO_DELAY), 'all'),
        );
      }),
    TEST_MS,
  );

  it(
    'a sync of the Redis disk takes longer than any time-out: runs fail in time, late effects are not charged twice',
    () =>
      expectSurvival('a sync of the Redis disk takes 6 s', async (load) => {
        const over = Promise.withResolvers<void>();
        void load.pauseDuring(over.promise);
        await whileDown(
          () => redis.restart({ slowSyncMs: 6_000 }),
          () => load.untilAllClientsWait(),
          () => redis.restart(NO_DELAY),
        ).finally(over.resolve);
      }),
    TEST_MS,
  );
});
