import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import type { OpenLedger } from '../src/ledger/ledger.ts';
import { ada, eachTest, HOUR_MS } from './harness.ts';
import { keysIn, redisHarness, snapshotOf, urlOf, type RedisHarness } from './redis-harness.ts';

const REFUSED = { reason: 'UNAVAILABLE', message: expect.stringContaining('npm run admin -- credits rebuild') };
const KEPT_ROWS = 300;

describe('replicas of the ledger on Redis', () => {
  const each = eachTest(() => redisHarness());
  const harness = () => each.harness as RedisHarness;
  const opened: OpenLedger[] = [];
  const replica = async (settings: { url?: string } = {}): Promise<OpenLedger> => {
    const one = await harness().open(settings);
    opened.push(one);
    return one;
  };
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  const reserve = ({ ledger }: OpenLedger, amountMicros = 1) => ledger.reserve(each.organization.organizationId, { id: each.organization.freshId(), amountMicros, ttlMs: HOUR_MS, maxOpen: 0 }, ada);
  const reserveSome = (one: OpenLedger, count: number, amountMicros?: number) => Promise.all(Array.from({ length: count }, () => reserve(one, amountMicros)));
  const balance = ({ ledger }: OpenLedger) => ledger.balance(each.organization.organizationId);
  const rows = ({ ledger }: OpenLedger) => ledger.rows(each.organization.organizationId, 0, 10);
  const mirrorAll = async ({ mirroring }: OpenLedger): Promise<void> => {
    while (await mirroring!.mirror(each.organization.organizationId));
  };
  async function breakConnections(): Promise<void> {
    const clients = String(await harness().redis.client('LIST')).split('\n').filter((line) => line.includes(` name=${harness().keyPrefix} `));
    for (const line of clients) await harness().redis.client('KILL', 'ID', /^id=(\d+)/.exec(line)![1]!);
  }

  it.each([['in Redis', 1], ['in the mirror alone', KEPT_ROWS + 10]])('refuse a fork that has grown past what one of them was told, whose row is %s; all of them, until a rebuild', async (_, more) => {
    const { organizationId } = each.organization;
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

    await expect(reserve(a)).rejects.toMatchObject(REFUSED);
    // rows first: that they were asked for is what makes this replica look again
    for (const call of [() => rows(b), () => reserve(b), () => balance(b), () => rows(a), () => balance(a)]) await expect(call()).rejects.toMatchObject(REFUSED);
    // Redis loses the fence as well
    await forked();
    await breakConnections();
    for (const one of [await replica(), b, a]) await expect(balance(one)).rejects.toMatchObject(REFUSED);

    await b.ledger.rebuild(organizationId);
    for (const one of [a, b, await replica()]) expect(await balance(one)).toMatchObject({ availableMicros: 97, reservedMicros: 3, openReservations: 8 + more, sequence: 9 + more });
    await reserve(a);
    await breakConnections();
    expect(await balance(b)).toMatchObject({ availableMicros: 96 });
  });

  it('go on when what one of them was told has been mirrored and trimmed since', async () => {
    const [a, b] = [harness().opened, await replica()];
    await reserve(a);
    await reserveSome(b, KEPT_ROWS + 50, 0);
    await mirrorAll(b);
    expect(await harness().redis.xrange(`${await keysIn(harness(), each.organization.organizationId)}rows`, '2-0', '2-0')).toEqual([]);
    await breakConnections();
    expect(await reserve(a)).toMatchObject({ outcome: 'RESERVED', availableMicros: 98 });
  });

  it('tell that a change may have been made when its answer was lost and the ledger refused its repeat', async () => {
    const { organizationId } = each.organization;
    const account = `${await keysIn(harness(), organizationId)}account`;
    const server = new URL(urlOf('REDIS_URL'));
    let sends = 0;
    // loses the answer to the first reserve; before the second arrives somebody fences the ledger
    const between = createServer((socket) => {
      const upstream = connect(Number(server.port), server.hostname);
      for (const one of [socket, upstream]) one.on('error', () => {}).on('close', () => [socket, upstream].forEach((side) => side.destroy()));
      let losing = false;
      socket.on('data', async (data) => {
        if (data.includes('"command":"reserve"') && ++sends === 1) losing = true;
        if (data.includes('"command":"reserve"') && sends === 2) await harness().redis.hset(account, 'generation', 'rebuilding');
        upstream.write(data);
      });
      upstream.on('data', (data) => (losing ? socket.destroy() : socket.write(data)));
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const one = await replica({ url: `redis://127.0.0.1:${(between.address() as AddressInfo).port}` });

    await expect(reserve(one, 10)).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
    expect(sends).toBe(2);
    await one.ledger.rebuild(organizationId);
    expect(await each.organization.parts()).toEqual([90, 10, 0]);
    await one.close();
    between.close();
  });
});
