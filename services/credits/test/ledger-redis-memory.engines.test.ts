import { HOUR_MS } from 'platform/core/clock.ts';
import { makeLog } from 'platform/core/log.ts';
import { startRedis, type PrivateServer } from '../../../dev-servers/src/private-server.ts';
import { deleteKeys } from '../../../test/support/shared-engines.ts';
import { ledgerCommands } from '../src/ledger/redis/commands.ts';
import { openRedisConnection, type RedisConnection } from '../src/ledger/redis/connection.ts';
import { mirrorRows, openMirror } from '../src/ledger/redis/mirror.ts';
import { rebuildLedger } from '../src/ledger/redis/rebuild.ts';
import { faultsOf } from './ledger-invariants.ts';
import { organizationWith, RETENTION_MS, type Organization } from './ledger-harness.ts';
import { keysIn, redisHarness, type RedisHarness } from './redis-harness.ts';

const UNAVAILABLE = { reason: 'UNAVAILABLE' };

describe('a Redis at its memory limit', () => {
  let server: PrivateServer;
  let harness: RedisHarness;
  let connection: RedisConnection;
  let organization: Organization;
  beforeAll(async () => {
    server = await startRedis();
    harness = await redisHarness(server.url);
    const { keyPrefix } = harness;
    const log = makeLog('credits', 'silent');
    connection = await openRedisConnection({ url: server.url, keyPrefix, timeoutMs: 60_000, unsafe: 'refuse', log });
  });
  afterAll(async () => {
    connection?.close();
    await harness?.stop();
    await server?.stop();
  });
  beforeEach(async () => {
    organization = await organizationWith(harness, 100);
  });
  afterEach(async () => {
    await giveMemory();
    expect(await faultsOf(harness.opened.ledger, organization.organizationId)).toEqual([]);
  });

  const fillMemory = () => harness.redis.config('SET', 'maxmemory', '1');
  const giveMemory = () => harness.redis.config('SET', 'maxmemory', '0');
  /** Every key of the server with its value. */
  async function everything(): Promise<Record<string, string>> {
    const keys = (await harness.redis.keys('*')).sort();
    const dumps = keys.map(async (key) => [key, (await harness.redis.dumpBuffer(key)).toString('base64')]);
    return Object.fromEntries(await Promise.all(dumps));
  }
  const commands = () => {
    const { keyPrefix, store } = harness;
    const mirror = openMirror(store, undefined as never);
    const clock = { now: () => harness.nowMs() };
    const log = makeLog('credits', 'silent');
    return { mirror, ...ledgerCommands(connection, mirror, { keyPrefix, retentionMs: RETENTION_MS, clock, log }) };
  };
  /** Rebuilds the ledger; the memory is full from just before this step. */
  function rebuildWhoseMemoryEndsAt(step: 'fence' | 'restore' | 'replace') {
    const own = commands();
    const mirrorBatch = (organizationId: string) => mirrorRows(own, organizationId);
    const failing = async (...args: unknown[]) => {
      await fillMemory();
      return (own[step] as (...given: unknown[]) => Promise<never>)(...args);
    };
    const needs = { ...own, retentionMs: RETENTION_MS, mirrorBatch, [step]: failing };
    return rebuildLedger(needs, organization.organizationId);
  }

  it('refuses every change and leaves every key as it was; reads are answered, and changes as soon as it has room', async () => {
    const [open, settled, due] = [organization.freshId(), organization.freshId(), organization.freshId()];
    await organization.reserve(due, 5, { ttlMs: 1_000 });
    await organization.reserve(open, 10);
    await organization.reserve(settled, 10);
    await organization.settle(settled, 10);
    await harness.advance(2_000);
    const [before, balance, rows] = [await everything(), await organization.balance(), await organization.rows()];
    await fillMemory();
    for (const change of [
      () => organization.grant(organization.freshId(), 5),
      () => organization.reserve(organization.freshId(), 5),
      () => organization.extend(open, 2 * HOUR_MS),
      () => organization.settle(open, 5),
      () => organization.settle(due, 5),
      () => organization.release(open),
      () => organization.release(organization.freshId()),
      () => organization.expire(),
    ])
      await expect(change()).rejects.toMatchObject(UNAVAILABLE);
    expect(await everything()).toEqual(before);
    expect(await organization.balance()).toEqual(balance);
    expect(await organization.rows()).toEqual(rows);
    expect(await organization.settle(settled, 10)).toMatchObject({ state: 'SETTLED', chargedMicros: 10 });
    await giveMemory();
    expect(await organization.settle(open, 5)).toMatchObject({ state: 'SETTLED', chargedMicros: 5 });
  });

  it('still lets mirrored rows be removed, which makes room', async () => {
    await Promise.all(Array.from({ length: 500 }, () => organization.reserve(organization.freshId(), 0)));
    await fillMemory();
    while (await harness.opened.mirroring!.mirror(organization.organizationId));
    expect(await harness.redis.xlen(`${await keysIn(harness, organization.organizationId)}rows`)).toBe(300);
  });

  it('still takes the fence by which a replica stops all others', async () => {
    const { generation } = await commands().mirror.accountRecord(organization.organizationId);
    await fillMemory();
    await commands().fence(organization.organizationId, 'lost');
    const account = `${await keysIn(harness, organization.organizationId)}account`;
    expect(await harness.redis.hget(account, 'generation')).toBe('lost');
    await giveMemory();
    await harness.redis.hset(account, 'generation', generation);
  });

  it.each(['restore', 'replace'] as const)(
    'refuses the step "%s" of a rebuild before it removes anything; repeated with room, the rebuild loses nothing',
    async (step) => {
      const ended = Array.from({ length: 10 }, () => organization.freshId());
      const open = organization.freshId();
      await organization.reserve(open, 30);
      for (const id of ended) await organization.release((await organization.reserve(id, 1)) && id);
      const [balance, rows] = [await organization.balance(), await organization.rows()];
      const base = await keysIn(harness, organization.organizationId);
      await expect(rebuildWhoseMemoryEndsAt(step)).rejects.toMatchObject(UNAVAILABLE);
      // the fence stands, and everything behind it
      expect(await harness.redis.hget(`${base}account`, 'availableMicros')).toBe(String(balance.availableMicros));
      expect(await harness.redis.xlen(`${base}rows`)).toBe(rows.length);
      expect(await harness.redis.zrange(`${base}open`, '0', '-1')).toEqual([open]);
      expect(await harness.redis.exists(`${base}r:${open}`)).toBe(1);
      await expect(organization.balance()).rejects.toMatchObject(UNAVAILABLE);
      await giveMemory();
      expect(await harness.opened.ledger.rebuild(organization.organizationId)).toEqual(balance);
      expect(await organization.rows()).toEqual(rows);
      expect(await organization.settle(open, 30)).toMatchObject({ state: 'SETTLED', chargedMicros: 30 });
    },
  );

  it('loses nothing when a lost ledger is rebuilt, refused at the limit, and rebuilt again', async () => {
    const id = organization.freshId();
    await organization.reserve(id, 40);
    while (await harness.opened.mirroring!.mirror(organization.organizationId));
    const balance = await organization.balance();
    await deleteKeys(harness.redis, `${await keysIn(harness, organization.organizationId)}*`);
    await fillMemory();
    await expect(harness.opened.ledger.rebuild(organization.organizationId)).rejects.toMatchObject(UNAVAILABLE);
    await giveMemory();
    expect(await harness.opened.ledger.rebuild(organization.organizationId)).toEqual(balance);
    expect(await organization.reserve(id, 40)).toMatchObject({ outcome: 'RESERVED', state: 'OPEN' });
  });
});
