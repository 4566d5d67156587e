import {
  startKafka,
  startMongo,
  startRedis,
  type PrivateServer,
  type RedisOptions,
} from '../../dev-servers/src/private-server.ts';
import { LOAD_AGENTS, QUICK, SHORT_LEASES } from '../support/load-settings.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad, type Load } from '../support/load.ts';
import { startStack, type Stack, type Tenant } from '../support/stack.ts';

/** A case: start of a load, outage, recovery and the count, on a machine that may be busy. */
const CASE_MS = 300_000;
const CLIENTS = 6;
const ACKNOWLEDGED = 30;
/** Nobody waits longer for an answer: what a request needs of an engine one after the other, each with its time-out of 5 s, on a busy machine. */
const ANSWERED_WITHIN_MS = 25_000;
/** Of which it may wait 3 s to be authenticated. */
const CREATED_WITHIN_MS = 16_000;

type EngineName = 'MongoDB' | 'Redis' | 'Kafka';
const ENGINES: EngineName[] = ['MongoDB', 'Redis', 'Kafka'];
/** How long a pause lasts: every time-out is over then, and so is the session of a consumer of Kafka. */
const PAUSE_MS = 30_000;
/** Reservations that no case could wait for: none is left because it expired. */
const OUTLIVING = { RESERVATION_TTL_MS: '3600000' };
/** What answers while the engine does not. */
const MEANWHILE: Record<EngineName, { types: number; agents: number; run: number }> = {
  MongoDB: { types: 503, agents: 503, run: 503 },
  Redis: { types: 200, agents: 200, run: 503 },
  Kafka: { types: 200, agents: 200, run: 200 },
};

describe('an engine that fails under load, with two replicas of every service', () => {
  let engines: Record<EngineName, PrivateServer>;
  let redis: PrivateServer<RedisOptions>;
  let stack: Stack;
  beforeAll(async () => {
    const [MongoDB, Redis, Kafka] = await Promise.all([startMongo(), startRedis(), startKafka()]);
    redis = Redis;
    engines = { MongoDB, Redis, Kafka };
    stack = await startStack({
      env: { ...SHORT_LEASES, ...OUTLIVING, MONGODB_URL: MongoDB.url, REDIS_URL: Redis.url, KAFKA_BROKERS: Kafka.url },
    });
  });
  afterAll(async () => {
    await stack.stop();
    for (const engine of Object.values(engines)) await engine.stop();
  });

  /** Load before, in and after a fault; then everything that its clients were told is held against what is there. */
  async function survives(what: string, fault: (load: Load, tenant: Tenant) => Promise<void>): Promise<void> {
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);
    await fault(load, tenant);
    await load.untilAcknowledged(ACKNOWLEDGED);
    await load.stop();
    const counts = await expectNothingLost(stack, tenant, load);
    printCounts(what, counts);
    expect(load.sent.filter(({ status }) => ![200, 201, 503, 504].includes(status as number))).toEqual([]);
    expect(counts.slowestMs).toBeLessThan(ANSWERED_WITHIN_MS);
    expect(
      Math.max(
        ...load.sent.filter(({ request: sent }) => sent === 'POST /api/memory/objects').map(({ tookMs }) => tookMs),
      ),
    ).toBeLessThan(CREATED_WITHIN_MS);
  }

  async function expectMeanwhile(name: EngineName, tenant: Tenant): Promise<void> {
    const replies = await Promise.all([
      tenant.requestOnce('GET', '/api/memory/types'),
      tenant.requestOnce('GET', '/api/agent/run'),
      tenant.requestOnce('POST', '/api/agent/run', { agentName: QUICK, args: { n: 0 } }),
    ]);
    const [types, agents, run] = replies.map(({ status }) => status);
    expect({ types, agents, run }).toEqual(MEANWHILE[name]);
    for (const { status, headers } of replies) expect(headers.get('retry-after')).toBe(status === 503 ? '1' : null);
  }

  /** `meanwhile` while the engine is away; a case that fails leaves it well, too. */
  async function away(
    begin: () => Promise<void> | void,
    meanwhile: () => Promise<unknown>,
    end: () => Promise<void> | void,
  ): Promise<void> {
    try {
      await begin();
      await meanwhile();
    } finally {
      await end();
    }
  }

  /** Away until everybody who needs it has been answered, and for so long; of Kafka nobody needs anything. */
  const outage = (
    what: string,
    name: EngineName,
    begin: () => Promise<void> | void,
    end: () => Promise<void> | void,
    lastingMs = 0,
  ): Promise<void> =>
    survives(`${what} of ${name}`, async (load, tenant) => {
      const over = Promise.withResolvers<void>();
      void load.pauseDuring(over.promise);
      const until = performance.now() + lastingMs;
      const meanwhile = async (): Promise<void> => {
        await (name === 'Kafka' ? load.untilAcknowledged(ACKNOWLEDGED) : load.untilAllClientsWait());
        void load.pauseDuring(over.promise, 'all');
        await expectMeanwhile(name, tenant);
        await load.requestUntil(() => performance.now() >= until);
        await expectMeanwhile(name, tenant);
      };
      await away(begin, meanwhile, end).finally(over.resolve);
    });

  it.each(ENGINES)(
    'kill -9 of %s: what needs it is refused or unknown, the rest goes on, and afterwards nothing acknowledged is missing and nobody is charged twice',
    (name) =>
      outage(
        'kill -9',
        name,
        () => engines[name].kill(),
        () => engines[name].restart(),
      ),
    CASE_MS,
  );

  it.each(ENGINES)(
    '%s paused, accepting connections and answering nobody: what needs it is refused or unknown, the rest goes on, and afterwards nothing acknowledged is missing and nobody is charged twice',
    (name) =>
      outage(
        'a pause',
        name,
        () => engines[name].pause(),
        () => engines[name].resume(),
        PAUSE_MS,
      ),
    CASE_MS,
  );

  const NO_DELAY = { slowSyncMs: 0 };
  it(
    'a disk that takes 200 ms for every sync of Redis: the load is served all the same',
    () =>
      survives('a disk that takes 200 ms under Redis', (load) => {
        const slowed = async (): Promise<void> => load.pauseDuring(redis.restart({ slowSyncMs: 200 }), 'all');
        return away(
          slowed,
          () => load.untilAcknowledged(3 * ACKNOWLEDGED),
          () => load.pauseDuring(redis.restart(NO_DELAY), 'all'),
        );
      }),
    CASE_MS,
  );

  it(
    'a disk that takes longer for a sync of Redis than anybody waits: runs are refused or unknown in time, and what was done late is neither lost nor charged twice',
    () =>
      survives('a disk that takes 6 s under Redis', async (load) => {
        const over = Promise.withResolvers<void>();
        void load.pauseDuring(over.promise);
        await away(
          () => redis.restart({ slowSyncMs: 6_000 }),
          () => load.untilAllClientsWait(),
          () => redis.restart(NO_DELAY),
        ).finally(over.resolve);
      }),
    CASE_MS,
  );
});
