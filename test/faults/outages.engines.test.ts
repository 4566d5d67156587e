import { startKafka, startMongo, startRedis, type PrivateServer } from '../../engines/src/private-server.ts';
import { KILL_AGENTS, KILL_SETTINGS } from '../kills/settings.ts';
import { expectNothingLost, say } from '../kills/afterwards.ts';
import { startLoad } from '../kills/load.ts';
import { startStack, type Stack } from '../stack.ts';

const CLIENTS = 6;
const ACKNOWLEDGED = 30;

type EngineName = 'MongoDB' | 'Kafka';
/** What answers while the engine does not: GET paths and their status. */
const MEANWHILE: Record<EngineName, [path: string, status: number][]> = {
  MongoDB: [['/api/memory/types', 503], ['/api/agent/run', 503]],
  Kafka: [['/api/memory/types', 200], ['/api/agent/run', 200]],
};

describe('an engine that fails under load, with two replicas of every service', () => {
  let engines: Record<EngineName, PrivateServer>;
  let redis: PrivateServer;
  let stack: Stack;
  beforeAll(async () => {
    const [MongoDB, Redis, Kafka] = await Promise.all([startMongo(), startRedis(), startKafka()]);
    redis = Redis;
    engines = { MongoDB, Kafka };
    stack = await startStack({ env: { ...KILL_SETTINGS, MONGODB_URL: MongoDB.url, REDIS_URL: Redis.url, KAFKA_BROKERS: Kafka.url } });
  });
  afterAll(async () => {
    await stack.stop();
    for (const engine of [...Object.values(engines), redis]) await engine.stop();
  });

  /** Everybody who needs the engine has been answered while it is away; of Kafka nobody needs anything. */
  async function outage(what: string, name: EngineName, begin: () => Promise<void>, end: () => Promise<void>): Promise<void> {
    const tenant = await stack.tenant({ credits: 10_000, agents: KILL_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrl, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);
    const over = Promise.withResolvers<void>();
    void load.during(over.promise);
    await begin();
    await (name === 'Kafka' ? load.untilAcknowledged(ACKNOWLEDGED) : load.untilAllWait());
    for (const [path, status] of MEANWHILE[name]) {
      const reply = await tenant.request('GET', path);
      expect({ path, status: reply.status }).toEqual({ path, status });
      if (status === 503) expect(reply.headers.get('retry-after')).toBe('1');
    }
    await end();
    over.resolve();
    await load.untilAcknowledged(ACKNOWLEDGED);
    await load.stop();
    say(`${what} of ${name}`, await expectNothingLost(stack, tenant, load));
  }
  it.each<EngineName>(['MongoDB', 'Kafka'])('kill -9 of %s: what needs it is refused or unknown, the rest goes on, and afterwards nothing acknowledged is missing and nobody is charged twice', (name) =>
    outage('kill -9', name, () => engines[name].kill(), () => engines[name].restart()));
});
