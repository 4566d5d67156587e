import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import pino from 'pino';
import { HOUR_MS } from 'platform/core/clock.ts';
import { LEDGER_ROWS } from '../src/ledger/redis/mirror.ts';
import type { OpenLedger } from '../src/ledger/ledger.ts';
import type { RedisLedgerOptions } from '../src/ledger/redis/ledger.ts';
import { ada, withLedger, organizationWith } from './ledger-harness.ts';
import { keysIn, redisHarness, snapshotOf, urlOf, type RedisHarness } from './redis-harness.ts';

const LOST = { reason: 'UNAVAILABLE', message: expect.stringContaining('npm run admin -- credits rebuild') };
const KEPT_ROWS = 300;

describe('replicas of the ledger on Redis', () => {
  const context = withLedger(() => redisHarness());
  const harness = () => context.harness as RedisHarness;
  const opened: { close(): unknown }[] = [];
  const replica = async (settings: Partial<RedisLedgerOptions> = {}): Promise<OpenLedger> => {
    const one = await harness().open(settings);
    opened.push(one);
    return one;
  };
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  const reserve = ({ ledger }: OpenLedger, amountMicros = 1) =>
    ledger.reserve(
      context.organization.organizationId,
      { id: context.organization.freshId(), amountMicros, ttlMs: HOUR_MS, maxOpen: 0 },
      ada,
    );
  const reserveSome = (one: OpenLedger, count: number, amountMicros?: number) =>
    Promise.all(Array.from({ length: count }, () => reserve(one, amountMicros)));
  const balance = ({ ledger }: OpenLedger) => ledger.balance(context.organization.organizationId);
  const rows = ({ ledger }: OpenLedger) => ledger.rows(context.organization.organizationId, 0, 10);
  const mirrorAll = async ({ mirroring }: OpenLedger): Promise<void> => {
    while (await mirroring!.mirror(context.organization.organizationId));
  };
  async function breakConnections(): Promise<void> {
    const clients = String(await harness().redis.client('LIST'))
      .split('\n')
      .filter((line) => line.includes(` name=${harness().keyPrefix} `));
    for (const line of clients) await harness().redis.client('KILL', 'ID', /^id=(\d+)/.exec(line)![1]!);
  }

  /**
   * A replica behind a proxy. `fateOf` decides what happens to the data that it sends: the connection may break before
   * the data arrives ('unsent'), or before the answer does ('unanswered').
   */
  async function replicaThrough(
    fateOf: (sent: string) => Promise<'pass' | 'unsent' | 'unanswered'>,
  ): Promise<OpenLedger> {
    const server = new URL(urlOf('REDIS_URL'));
    const between = createServer((socket) => {
      const upstream = connect(Number(server.port), server.hostname);
      for (const one of [socket, upstream])
        one.on('error', () => {}).on('close', () => [socket, upstream].forEach((side) => side.destroy()));
      let losing = false;
      socket.on('data', async (data) => {
        const fate = await fateOf(String(data));
        if (fate === 'unsent') return socket.destroy();
        losing ||= fate === 'unanswered';
        upstream.write(data);
      });
      upstream.on('data', (data) => (losing ? socket.destroy() : socket.write(data)));
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const one = await replica({ url: `redis://127.0.0.1:${(between.address() as AddressInfo).port}` });
    opened.push(between);
    return one;
  }

  it.each([
    ['in Redis', 1],
    ['in the mirror alone', KEPT_ROWS + 10],
  ])(
    'all reject a fork that is longer than what one of them saw acknowledged, whose row is %s, until a rebuild',
    async (_, more) => {
      const { organizationId } = context.organization;
      const [a, b] = [harness().opened, await replica()];
      await mirrorAll(a);
      await reserveSome(a, 2);
      await reserve(b);
      const failOver = await snapshotOf(harness(), organizationId);
      await reserveSome(a, 5);
      await failOver();
      await breakConnections();
      await reserveSome(b, 5 + more, 0);
      if (more > KEPT_ROWS) await mirrorAll(b);
      const forked = await snapshotOf(harness(), organizationId);

      await expect(reserve(a)).rejects.toMatchObject(LOST);
      // rows first: the fence that the call runs into makes this replica verify again
      for (const call of [() => rows(b), () => reserve(b), () => balance(b), () => rows(a), () => balance(a)])
        await expect(call()).rejects.toMatchObject(LOST);
      // Redis loses the fence, too
      await forked();
      await breakConnections();
      for (const one of [await replica(), b, a]) await expect(balance(one)).rejects.toMatchObject(LOST);

      await b.ledger.rebuild(organizationId);
      for (const one of [a, b, await replica()])
        expect(await balance(one)).toMatchObject({
          availableMicros: 97,
          reservedMicros: 3,
          openReservations: 8 + more,
          sequence: 9 + more,
        });
      await reserve(a);
      await breakConnections();
      expect(await balance(b)).toMatchObject({ availableMicros: 96 });
    },
  );

  it.each([
    ['mirror', ({ mirroring }: OpenLedger, organizationId: string) => mirroring!.mirror(organizationId), false],
    [
      'relay',
      ({ ledger }: OpenLedger, organizationId: string) =>
        ledger.unrelayed(organizationId, 10).then((found) => found.length),
      3,
    ],
  ])(
    'reject a fork that the job %s of one of them finds, though no connection broke, and log it once',
    async (_, job, expected) => {
      const { organizationId } = context.organization;
      const logged: { level: number; organizationId: string; error: string }[] = [];
      const log = pino({ level: 'warn' }, { write: (line) => void logged.push(JSON.parse(line)) });
      const [a, b] = [await replica({ log }), await replica({ log })];
      await reserve(b);
      const failOver = await snapshotOf(harness(), organizationId);
      await reserve(a);
      await mirrorAll(a);
      await failOver();
      // b cannot know of the loss: its row takes the sequence of a mirrored one
      expect(await reserve(b, 7)).toMatchObject({ outcome: 'RESERVED' });
      expect(logged).toEqual([]);

      expect(await job(a, organizationId)).toBe(expected);
      await expect(reserve(b)).rejects.toMatchObject(LOST);
      for (const one of [a, b, a]) expect(await job(one, organizationId)).toBe(expected);
      expect(logged).toMatchObject([{ level: 50, organizationId, error: "row 3 of Redis is not the mirror's" }]);
      for (const one of [b, a, await replica()])
        for (const call of [rows, reserve, balance]) await expect(call(one)).rejects.toMatchObject(LOST);
      await b.ledger.rebuild(organizationId);
      expect(await balance(a)).toMatchObject({ availableMicros: 98, reservedMicros: 2, sequence: 3 });
    },
  );

  it('accept calls when the row that one of them saw acknowledged has been mirrored and trimmed since', async () => {
    const [a, b] = [harness().opened, await replica()];
    await reserve(a);
    await reserveSome(b, KEPT_ROWS + 50, 0);
    await mirrorAll(b);
    expect(
      await harness().redis.xrange(`${await keysIn(harness(), context.organization.organizationId)}rows`, '2-0', '2-0'),
    ).toEqual([]);
    await breakConnections();
    expect(await reserve(a)).toMatchObject({ outcome: 'RESERVED', availableMicros: 98 });
  });

  it('answer OUTCOME_UNKNOWN when the answer to a change was lost and the ledger rejected its repeat', async () => {
    const { organizationId } = context.organization;
    const account = `${await keysIn(harness(), organizationId)}account`;
    let sends = 0;
    // loses the answer to the first reserve, and fences the ledger before the second arrives
    const one = await replicaThrough(async (sent) => {
      if (!sent.includes('"command":"reserve"')) return 'pass';
      if (++sends === 2) await harness().redis.hset(account, 'generation', 'rebuilding');
      return sends === 1 ? 'unanswered' : 'pass';
    });

    await expect(reserve(one, 10)).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    expect(sends).toBe(2);
    await one.ledger.rebuild(organizationId);
    expect(await context.organization.balances()).toEqual([90, 10, 0]);
  });

  it('rebuild one at a time: a rebuild that another one overtakes is a CONFLICT', async () => {
    const { organizationId } = context.organization;
    const { store, opened: other } = harness();
    await reserveSome(other, 2);
    await mirrorAll(other);
    let reads = 0;
    const overtaken = await replica({
      store: {
        ...store,
        find: async (...asked) => {
          if (asked[1].name === LEDGER_ROWS.name && ++reads === 1) {
            await other.ledger.rebuild(organizationId);
            await reserveSome(other, 3);
            await mirrorAll(other);
          }
          return store.find(...asked);
        },
      },
    });
    await expect(overtaken.ledger.rebuild(organizationId)).rejects.toMatchObject({ reason: 'CONFLICT' });
    expect(reads).toBeGreaterThan(0);
    expect(await balance(other)).toMatchObject({ availableMicros: 95, openReservations: 5, sequence: 6 });
  });

  it('list no rows over a connection that was opened after the verification', async () => {
    await reserveSome(harness().opened, 2);
    const failOver = await snapshotOf(harness(), context.organization.organizationId);
    await reserve(harness().opened);
    let lists = 0;
    const one = await replicaThrough(async (sent) => {
      if (!sent.includes('XREVRANGE\r\n') || ++lists > 1) return 'pass';
      await failOver();
      return 'unsent';
    });
    await expect(rows(one)).rejects.toMatchObject(LOST);
    expect(lists).toBe(1);
    await one.ledger.rebuild(context.organization.organizationId);
  });

  it('write nothing into Redis for an organization that MongoDB does not know, as no job would find it', async () => {
    const { redis, keyPrefix, store, opened: working } = harness();
    const { organizationId, freshId } = await organizationWith(harness(), 0);
    const inRedis = async (): Promise<string[]> =>
      [
        ...(await redis.keys(`${keyPrefix}:*${organizationId}*`)),
        ...(await working.platformLedger.organizationsDue('', 10_000)),
        ...(await working.mirroring!.organizationsUnmirrored('', 10_000)),
      ].filter((one) => one.includes(organizationId));
    const calls = ({ ledger }: OpenLedger): Promise<PromiseSettledResult<unknown>[]> =>
      Promise.allSettled([
        ledger.grant(organizationId, { id: freshId(), amountMicros: 5, note: '' }, ada),
        ledger.reserve(organizationId, { id: freshId(), amountMicros: 0, ttlMs: HOUR_MS, maxOpen: 0 }, ada),
        ledger.release(organizationId, freshId(), ada),
        ledger.settle(organizationId, freshId(), 1, ada),
        ledger.balance(organizationId),
        ledger.rows(organizationId, 0, 10),
      ]);
    const down = new Error('MongoDB is down');
    const before = await replica({ store: { ...store, apply: () => Promise.reject(down) } });
    expect(await calls(before)).toEqual(Array(6).fill({ status: 'rejected', reason: down }));
    expect(await inRedis()).toEqual([]);
    // as if it were killed after it wrote the account record and before it ran the script
    const between = await replica({
      store: { ...store, apply: (...batch) => store.apply(...batch).then(() => Promise.reject(down)) },
    });
    await expect(between.ledger.balance(organizationId)).rejects.toBe(down);
    expect(await inRedis()).toEqual([]);
    expect((await calls(working)).map(({ status }) => status)).toEqual(Array(6).fill('fulfilled'));
    expect((await inRedis()).length).toBeGreaterThan(3);
  });
});
