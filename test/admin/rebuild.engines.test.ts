import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { letIdleConnectionsSleep } from 'platform/events/kafka/idle-connections.ts';
import { deadLetterName, groupName } from 'platform/events/kafka/topics.ts';
import { newId } from 'platform/core/ids.ts';
import { startRedis, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { eventually } from 'platform/service/test-end.ts';
import type { Reply } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

letIdleConnectionsSleep();

const LOST =
  'The credit ledger of this organization has lost or forked data and must be rebuilt: npm run admin -- credits rebuild';
const RUNS = 5;

describe('recovery by the operator after an engine lost data, with two replicas of every service', () => {
  let redis: PrivateServer;
  let stack: Stack;
  let admin: CommandLine;
  beforeAll(async () => {
    redis = await startRedis();
    stack = await startStack({ env: { REDIS_URL: redis.url } });
    admin = commandLine(stack.env);
  });
  afterAll(async () => {
    await stack.stop();
    await redis.stop();
  });

  const tenantWithRuns = async (): Promise<Tenant> => {
    const tenant = await stack.tenant({ credits: 100, agents: [expressionAgent('priced', '{"n": n + 1}')] });
    for (const { status } of await Promise.all(Array.from({ length: RUNS }, () => run(tenant))))
      expect(status).toBe(200);
    return tenant;
  };
  const PRICED = ['POST', '/api/agent/run', { agentName: 'priced', args: { n: 1 } }] as const;
  const run = (tenant: Tenant): Promise<Reply> => tenant.request(...PRICED);
  const runOnce = (tenant: Tenant): Promise<Reply> => tenant.requestOnce(...PRICED);
  const on = (tenant: Tenant, words: string) => admin(`--organization ${tenant.name} ${words}`);
  const stateOf = async (tenant: Tenant) => ({
    account: await json(on(tenant, '--json credits balance')),
    rows: await json(on(tenant, '--json credits ledger --page-size 1000')),
  });

  it('credits rebuild: after Redis lost all data, runs get 503 until this command restores the ledger', async () => {
    const [tenant, other] = [await tenantWithRuns(), await tenantWithRuns()];
    await eventually(async () => (await stack.runJob('credits', 'mirror')).count === 0);
    const before = await stateOf(tenant);
    expect(before.account).toMatchObject({
      availableMicros: (100 - RUNS) * 1e6,
      reservedMicros: 0,
      spentMicros: RUNS * 1e6,
      sequence: 1 + 2 * RUNS,
    });

    await redis.kill();
    rmSync(join(redis.folder, 'data'), { recursive: true });
    mkdirSync(join(redis.folder, 'data'));
    await redis.restart();

    await eventually(async () => (await on(tenant, 'credits balance')).stderr === `${LOST}\n`);
    for (const reply of await Promise.all([tenant, other, tenant, other].map(runOnce))) {
      expect({ status: reply.status, body: reply.body, retryAfter: reply.headers.get('retry-after') }).toEqual({
        status: 503,
        body: { code: 'unavailable', error: 'The credits service is not available', requestId: expect.any(String) },
        retryAfter: '1',
      });
    }

    expect(await printed(on(tenant, 'credits rebuild'))).toBe(
      `available         95\nreserved          0\nspent             5\ngranted           100\nopenReservations  0\nledgerRows        11\n`,
    );
    expect(await stateOf(tenant)).toEqual(before);
    for (const { status } of await Promise.all([run(tenant), run(tenant)])) expect(status).toBe(200);
    expect(await printed(on(tenant, 'credits balance'))).toMatch(/^available +93$/m);

    expect([(await runOnce(other)).status, await sentence(on(other, 'credits balance'))]).toEqual([503, LOST]);
    expect(await json(on(other, '--json credits rebuild'))).toEqual(before.account);
    expect((await run(other)).status).toBe(200);
  });

  it('events replay: dead audit events reach the trail once; a malformed one does not hold those after it', async () => {
    const prefix = stack.env.KAFKA_TOPIC_PREFIX as string;
    const { organizationId, name } = await stack.tenant();
    const producer = new Kafka({
      brokers: (stack.env.KAFKA_BROKERS as string).split(','),
      logLevel: logLevel.NOTHING,
    }).producer();
    await producer.connect();
    const addDeadLetter = async (data: object): Promise<void> => {
      const id = newId();
      const event = {
        specversion: '1.0',
        id,
        source: '/memory',
        type: 'audit.entry.v1',
        subject: `entries/${id}`,
        time: new Date().toISOString(),
        datacontenttype: 'application/json',
        organizationid: organizationId,
        partitionkey: organizationId,
        sequence: 1,
        data,
      };
      await producer.send({
        topic: deadLetterName(prefix, 'audit.v1'),
        messages: [
          {
            key: organizationId,
            value: JSON.stringify(event),
            headers: { group: groupName(prefix, 'audit.v1', 'auth-audit'), error: 'the store was away' },
          },
        ],
      });
    };
    const entry = (action: string) => ({
      action,
      outcome: 'success',
      actor: { kind: 'user', id: 'u1', name: 'ada', via: '' },
      target: null,
      code: null,
      count: 1,
      requestId: 'r1',
    });
    const trail = async (): Promise<string[]> =>
      (await json(admin(`--organization ${name} --json audit list`))).map(({ action }: { action: string }) => action);

    const replayed = (count: number) => new RegExp(`^Job +Ran +Done\\nauth/dead-letters +yes +${count}\\n$`);
    await addDeadLetter(entry('memory_type.create'));
    await addDeadLetter(entry('memory_type.delete'));
    expect(await printed(admin('events replay'))).toMatch(replayed(2));
    expect((await trail()).filter((action) => action.startsWith('memory_type.'))).toEqual([
      'memory_type.delete',
      'memory_type.create',
    ]);
    await addDeadLetter(entry('not.an_action'));
    await addDeadLetter(entry('memory_type.update'));
    expect(await printed(admin('events replay'))).toMatch(replayed(1));
    expect(await printed(admin('events replay'))).toMatch(replayed(0));
    expect((await trail())[0]).toBe('memory_type.update');
    await producer.disconnect();
  });
});
