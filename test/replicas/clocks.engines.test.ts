import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MongoClient } from 'mongodb';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import type { ServiceClient } from 'platform/rpc/call.ts';
import { newId, timeOfId } from 'platform/core/ids.ts';
import type { Operator } from 'platform/rpc/operator.ts';
import { startMongo, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad, type SentRequest } from '../support/load.ts';
import { LOAD_AGENTS, LONG_ENGINE_TIMEOUTS, QUICK, SLOW, SLOW_ARGS } from '../support/load-settings.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, untilAvailable } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const MINUTE_MS = 60_000;
const CLIENTS = 3;
const ACKNOWLEDGED = 60;
const EACH = 6;
/** Leases shorter than the skew and longer than any stall: only a wrong clock could end them. Jobs run all the time. */
const SETTINGS = {
  ...LONG_ENGINE_TIMEOUTS,
  LEASE_MS: '120000',
  RUN_LEASE_MS: '120000',
  RESERVATION_TTL_MS: '150000',
  REAPER_INTERVAL_MS: '500',
  SWEEP_INTERVAL_MS: '500',
  RETENTION_INTERVAL_MS: '500',
  AUDIT_RETENTION_INTERVAL_MS: '1000',
};
/**
 * Authentication may take 3 s and is not retried in the last 200 ms: a rejection after a longer time than this comes
 * from a stalled machine. A wrong clock would cause a rejection at once.
 */
const STALL_MS = 2_500;
const MAX_STALLED_SHARE = 0.05;
const timeIn = (id: string): string => new Date(timeOfId(id)).toISOString();
const isStalled = ({ outcome, tookMs }: SentRequest): boolean => outcome === 'rejected' && tookMs > STALL_MS;
const isCloseToNow = (time: string): boolean => Math.abs(Date.parse(time) - Date.now()) < 2 * MINUTE_MS;

const LONG_MS = 600_000;

describe.each([5, -5])('two replicas whose clocks are %i minutes apart', (minutes) => {
  let mongo: PrivateServer;
  let stack: Stack;
  beforeAll(async () => {
    mongo = await startMongo();
    const preloaded = pathToFileURL(join(import.meta.dirname, 'skewed-clock.ts'));
    const skewed = { NODE_OPTIONS: `--import=${preloaded}?ms=${minutes * MINUTE_MS}` };
    stack = await startStack({ env: { ...SETTINGS, MONGODB_URL: mongo.url }, replicaEnv: skewed });
  });
  afterAll(async () => {
    await stack.stop();
    await mongo.stop();
  });

  /**
   * The statuses of requests with the token at every gateway. They are sent one after the other: a gateway
   * authenticates concurrent requests with one call, and its calls go to the replicas of auth in turn.
   */
  async function statusesAtAllGateways(token: string): Promise<ReadonlySet<number>> {
    const statuses = await Promise.all(
      stack.baseUrls.map(async (baseUrl) => {
        const found: number[] = [];
        for (let turn = 0; turn < EACH; turn++)
          found.push((await untilAvailable(() => request(baseUrl, 'GET', '/api/memory/types', { token }))).status);
        return found;
      }),
    );
    return new Set(statuses.flat());
  }

  it('really have different clocks', async () => {
    // the launcher writes this file after its last line of output
    const markers = [join(stack.folder, 'replica', 'seeded'), join(stack.folder, 'seeded')];
    await eventually(() => markers.every((marker) => existsSync(marker) && statSync(marker).size > 0));
    const [replica, first] = markers.map((marker) => Date.parse(readFileSync(marker, 'utf8').trim())) as [
      number,
      number,
    ];
    expect(Math.abs(replica - first - minutes * MINUTE_MS)).toBeLessThan(2 * MINUTE_MS);
  });

  it(
    'reject no request under load, take no run or lease from a living process, and charge nothing twice',
    async () => {
      const loads = await Promise.all(
        stack.baseUrls.map(async (baseUrl) => {
          const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
          return { tenant, load: await startLoad({ baseUrl, token: tenant.token, clients: CLIENTS }) };
        }),
      );
      await Promise.all(
        loads.map(async ({ load }) => {
          const slow = Promise.all([load.run(SLOW, SLOW_ARGS), load.run(SLOW, SLOW_ARGS, newId())]);
          await load.untilAcknowledged(ACKNOWLEDGED);
          await Promise.all([slow, load.stop()]);
        }),
      );
      for (const { tenant, load } of loads) {
        const [stalled, wrong] = [
          load.sent.filter(isStalled),
          load.sent.filter((sent) => sent.outcome !== 'acknowledged' && !isStalled(sent)),
        ];
        expect(wrong).toEqual([]);
        expect(stalled.length).toBeLessThanOrEqual(MAX_STALLED_SHARE * load.sent.length);
        printCounts(`${minutes} minutes apart`, await expectNothingLost(stack, tenant, load));
      }
      expect((await leases()).filter(({ epoch }) => epoch !== 1)).toEqual([]);
    },
    LONG_MS,
  );

  it(
    'both accept a token that is valid for two more minutes, and both refuse an expired one',
    async () => {
      const tenant = await stack.tenant();
      for (const auth of await stack.operator.clients(AuthServiceService, 'auth')) {
        expect(await statusesAtAllGateways(await tokenFor(auth, stack.operator, tenant, 2 * MINUTE_MS))).toEqual(
          new Set([200]),
        );
        const brief = await tokenFor(auth, stack.operator, tenant, 10_000);
        await eventually(async () => [...(await statusesAtAllGateways(brief))].join() === '401');
      }
    },
    LONG_MS,
  );

  it(
    'write correct times into records and ids, so that lists have the newest first',
    async () => {
      const tenant = await stack.tenant({ credits: 100, agents: LOAD_AGENTS });
      const {
        body: { id: typeId },
      } = await tenant.request('POST', '/api/memory/types', { type: 'T', jsonSchema: {} });
      const times: string[] = [];
      for (let turn = 0; turn < 2 * EACH; turn++) {
        const { body: created } = await tenant.request('POST', '/api/memory/objects', {
          typeId,
          key: `${turn}`,
          content: {},
        });
        const { body: changed } = await tenant.request('PATCH', `/api/memory/objects/${created.id}`, {
          content: { turn },
        });
        const run = await tenant.request('POST', '/api/agent/run', { agentName: QUICK, args: { n: 1 } });
        const { body: execution } = await tenant.request('GET', `/api/agent/executions/${run.body.agentExecutionId}`);
        times.push(
          created.createdAt,
          changed.updatedAt,
          execution.createdAt,
          execution.startedAt,
          execution.finishedAt,
          timeIn(created.id),
          timeIn(execution.id),
        );
      }
      expect(times.filter((time) => !isCloseToNow(time))).toEqual([]);
    },
    LONG_MS,
  );

  async function leases(): Promise<{ _id: string; epoch: number }[]> {
    const client = new MongoClient(stack.env.MONGODB_URL as string);
    const found = await Promise.all(
      ['auth', 'agents', 'memory', 'credits'].map((name) =>
        client
          .db(`${stack.env.MONGODB_DATABASE}_${name}`)
          .collection<{ _id: string; epoch: number }>('leases')
          .find()
          .toArray(),
      ),
    );
    await client.close();
    return found.flat();
  }
});

async function tokenFor(
  auth: ServiceClient<AuthServiceService>,
  operator: Operator,
  { organizationId, administrator }: Tenant,
  livesMs: number,
): Promise<string> {
  const { principal } = await auth.assumeUser({ email: administrator }, operator.as(organizationId));
  const { value } = await auth.createServerToken(
    { name: newId(), expiresAt: new Date(Date.now() + livesMs).toISOString() },
    operator.asPrincipal(principal as never),
  );
  return value;
}
