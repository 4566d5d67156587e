import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { startKafka, startMongo, startRedis, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { commandLine, json } from '../admin/admin-command.ts';
import { LONG_ENGINE_TIMEOUTS } from '../support/load-settings.ts';
import { relay } from '../support/nothing-lost.ts';
import { auditTrailOf, executionsOf, expectLedgerConsistent, ledgerOf } from '../support/organization-records.ts';
import { startStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';

const LOST = /has lost or forked data and must be rebuilt/;

/** Puts this copy of its folder, or nothing, in the place of what a killed server has stored. */
async function replaceData(server: PrivateServer, copy?: string): Promise<void> {
  const data = join(server.folder, 'data');
  await server.kill();
  rmSync(data, { recursive: true });
  if (copy === undefined) mkdirSync(data);
  else cpSync(copy, data, { recursive: true });
  await server.restart();
}

// The drill of docs/operations.md: MongoDB as a snapshot of its volume has it, Redis empty, Kafka as it was.
it('after a loss of MongoDB and Redis, a snapshot of MongoDB and "credits rebuild" bring back what was in it', async () => {
  const [mongo, redis, folder] = [await startMongo(), await startRedis(), temporaryFolder()];
  const own = { ...LONG_ENGINE_TIMEOUTS, MONGODB_URL: mongo.url, REDIS_URL: redis.url };
  const stack = await startStack({ env: own, folder: folder.path, replicas: 1 });
  const admin = commandLine(stack.env);
  const tenant = await stack.tenant({ credits: 100, agents: [expressionAgent('priced', '{"n": n + 1}')] });
  const on = (words: string) => admin(`--organization ${tenant.name} ${words}`);
  const run = async () => expect((await tenant.request('POST', '/api/agent/run', PRICED)).status).toBe(200);
  const PRICED = { agentName: 'priced', args: { n: 1 } };
  for (let n = 0; n < 3; n++) await run();
  expect((await tenant.request('POST', '/api/memory/types', { type: 'kept', jsonSchema: {} })).status).toBe(201);
  await relay(stack);
  await eventually(async () => (await stack.runJob('credits', 'mirror')).count === 0);
  const before = { ...(await ledgerOf(stack, tenant)), executions: await executionsOf(stack, tenant) };
  const { head } = await json(on('--json audit verify'));

  await mongo.pause();
  cpSync(join(mongo.folder, 'data'), folder.path + '-snapshot', { recursive: true });
  mongo.resume();
  await run();
  expect((await tenant.request('POST', '/api/memory/types', { type: 'lost', jsonSchema: {} })).status).toBe(201);
  await relay(stack);
  await stack.stop();
  await replaceData(mongo, folder.path + '-snapshot');
  await replaceData(redis);

  // at the same addresses
  const { baseUrl } = stack;
  const again = { ...(await startStack({ env: stack.env, folder: folder.path, replicas: 1 })), baseUrl };
  expect((await on('credits balance')).stderr).toMatch(LOST);
  await json(on('--json credits rebuild'));
  const after = { ...(await ledgerOf(again, tenant)), executions: await executionsOf(again, tenant) };
  expect(after).toEqual(before);
  expectLedgerConsistent(after);
  const { body } = await tenant.request('GET', '/api/memory/types');
  expect(body.items.map(({ type }: { type: string }) => type)).toEqual(['kept']);
  // the trail goes on where the snapshot had it
  expect(await json(on(`--json audit verify --head ${head}`))).toMatchObject({ faults: [] });
  await run();
  await relay(again);
  expect(await json(on(`--json audit verify --head ${head}`))).toMatchObject({ faults: [] });
  expect((await ledgerOf(again, tenant)).account.spentMicros).toBe(before.account.spentMicros + 1e6);

  await again.stop();
  await Promise.all([mongo.stop(), redis.stop()]);
  folder.remove();
  rmSync(folder.path + '-snapshot', { recursive: true });
});

it('after a loss of Kafka, what was not yet published waits, and a restart makes the topics and publishes it', async () => {
  const [kafka, folder] = [await startKafka(), temporaryFolder()];
  const env = { ...LONG_ENGINE_TIMEOUTS, MONGODB_URL: '', REDIS_URL: '', KAFKA_BROKERS: kafka.url };
  const stack = await startStack({ env, folder: folder.path, replicas: 1 });
  const tenant = await stack.tenant();
  const create = async (type: string) =>
    expect((await tenant.request('POST', '/api/memory/types', { type, jsonSchema: {} })).status).toBe(201);
  await create('before');
  await relay(stack);
  await replaceData(kafka);
  await create('meanwhile');
  await stack.stop();

  const again = await startStack({ env: stack.env, folder: folder.path, replicas: 1 });
  await relay(again);
  const entries = await auditTrailOf(again, tenant, 'memory_type.create');
  expect(entries).toHaveLength(2);
  await again.stop();
  await kafka.stop();
  folder.remove();
});
