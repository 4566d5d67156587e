import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { MemoryType } from 'proto/memory/v1/memory.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { serverToken } from 'platform/service/testing.ts';
import { parseRaw, startGatewayFixture, type GatewayFixture } from '../fixture.ts';
import { makePlaces, networksOf } from '../../src/http/connection-limits.ts';

const [NEIGHBOUR, HOSTILE, NEWCOMER] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];

/** A gateway with room for eight connections, whose look-ups of types end when `release` is called. */
async function startSmall(env: Record<string, string> = {}) {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const slow = { underWay: 0 };
  const getMemoryType = async ({ id }: { id: string }) => {
    if (id === 'slow') {
      slow.underWay++;
      await promise;
    }
    return { memoryType: { ...MemoryType.decode(new Uint8Array()), id } };
  };
  const decide = ({ bearer }: { bearer: string }) =>
    bearer === 'invalid' ? new ServiceError('UNAUTHENTICATED') : { ...serverToken('organization-1'), subject: bearer };
  const fixture = await startGatewayFixture(
    { decide, memory: { getMemoryType } },
    { MAX_CONNECTIONS: '8', DRAIN_MS: '0', ...env },
  );
  return { fixture, release, slow };
}
async function open({ port }: GatewayFixture, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}
let tokens = 0;
async function ask(socket: Socket, id: string, token = `token-${tokens++}`): Promise<number> {
  socket.write(`GET /api/memory/types/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  const [reply] = (await once(socket, 'data')) as [Buffer];
  return parseRaw(reply.toString()).status;
}
const openMany = (fixture: GatewayFixture, address: string, count: number): Promise<Socket[]> =>
  Array.fromAsync({ length: count }, () => open(fixture, address));

describe('when all connections are taken', () => {
  it('a newcomer is answered, and the oldest of the address that has the most is closed', async () => {
    const { fixture } = await startSmall();
    const neighbours = await openMany(fixture, NEIGHBOUR, 2);
    const hostile = await openMany(fixture, HOSTILE, 6);
    const closed = hostile.map((socket) => once(socket, 'close'));
    expect(await ask(await open(fixture, NEWCOMER), 'a')).toBe(200);
    await closed[0];
    expect(hostile.map(({ closed }) => closed)).toEqual([true, false, false, false, false, false]);
    for (const neighbour of neighbours) expect(await ask(neighbour, 'a')).toBe(200);
    await fixture.stop();
  });
  it('a newcomer takes the place of one of its own address, if no other address has more', async () => {
    const { fixture } = await startSmall();
    const neighbours = await openMany(fixture, NEIGHBOUR, 4);
    const own = await openMany(fixture, HOSTILE, 4);
    const closed = once(own[0]!, 'close');
    expect(await ask(await open(fixture, HOSTILE), 'a')).toBe(200);
    await closed;
    for (const neighbour of neighbours) expect(await ask(neighbour, 'a')).toBe(200);
    await fixture.stop();
  });
  it('by connections that were never used, or with tokens that are not valid, every newcomer is answered', async () => {
    const { fixture } = await startSmall();
    for (let newcomer = 0; newcomer < 20; newcomer++) {
      for (const socket of await openMany(fixture, HOSTILE, 10)) socket.write('GET / HTTP/1.1\r\n');
      const invalid = await open(fixture, HOSTILE);
      void ask(invalid, 'a', 'invalid').catch(() => undefined);
      const socket = await open(fixture, NEWCOMER);
      expect(await ask(socket, 'a')).toBe(200);
      socket.destroy();
    }
    await fixture.stop();
  });
  it('those with a valid token are closed last, and none while its request is under way', async () => {
    const { fixture, release } = await startSmall();
    const sockets = await openMany(fixture, HOSTILE, 8);
    const [busy, idle, ...strangers] = sockets as [Socket, Socket, ...Socket[]];
    const slow = ask(busy, 'slow');
    expect(await ask(idle, 'a')).toBe(200);
    const order: Socket[] = [];
    for (const socket of sockets) socket.on('close', () => order.push(socket));
    for (let newcomer = 0; newcomer < 7; newcomer++) await ask(await open(fixture, HOSTILE), 'slow-not').catch(() => 0);
    expect(order.slice(0, 6)).toEqual(strangers);
    expect(order).not.toContain(busy);
    release();
    expect(await slow).toBe(200);
    await fixture.stop();
  });
  it.each<Record<string, string>>([{}, { TRUSTED_PROXIES: '1', CONNECTIONS_PER_ADDRESS: '1' }])(
    'by requests under way, a newcomer is answered 503 (%j)',
    async (env) => {
      const { fixture, release, slow } = await startSmall(env);
      const replies = (await openMany(fixture, HOSTILE, 8)).map((socket) => ask(socket, 'slow'));
      while (slow.underWay < replies.length) await new Promise(setImmediate);
      expect(await ask(await open(fixture, NEWCOMER), 'a')).toBe(503);
      release();
      expect(new Set(await Promise.all(replies))).toEqual(new Set([200]));
      await fixture.stop();
    },
  );
});

it('a connection that closed before its request ended has no place to give', () => {
  const places = makePlaces({ max: 2, maxPerAddress: 2 });
  const busy = (address: string) => {
    const place = places.take(address, () => undefined);
    place?.keep();
    place?.beginWork();
    return place;
  };
  const closed = busy(HOSTILE)!;
  expect(busy(HOSTILE)).toBeDefined();
  closed.giveBack();
  closed.endWork();
  expect(busy(NEIGHBOUR)).toBeDefined();
  expect(busy(NEWCOMER)).toBeUndefined();
});

it('a new connection on which nothing arrives is closed after FIRST_BYTE_TIMEOUT_MS, and a used one is not', async () => {
  const { fixture } = await startSmall({ FIRST_BYTE_TIMEOUT_MS: '1000' });
  const used = await open(fixture, NEIGHBOUR);
  expect(await ask(used, 'a')).toBe(200);
  const silent = await open(fixture, HOSTILE);
  silent.resume();
  await once(silent, 'close');
  expect(await ask(used, 'a')).toBe(200);
  used.destroy();
  await fixture.stop();
});

it.each([
  ['192.0.2.1', ['192.0.2.1']],
  ['::ffff:192.0.2.1', ['192.0.2.1']],
  ['2001:db8:1:2:3:4:5:6', ['2001:db8:1:2/64', '2001:db8:1:0/56', '2001:db8:1/48']],
  ['2001:db8:1:fff2::6', ['2001:db8:1:fff2/64', '2001:db8:1:ff00/56', '2001:db8:1/48']],
  ['2001:db8::6', ['2001:db8:0:0/64', '2001:db8:0:0/56', '2001:db8:0/48']],
  ['::1', ['0:0:0:0/64', '0:0:0:0/56', '0:0:0/48']],
  ['fe80::1%eth0', ['fe80:0:0:0/64', 'fe80:0:0:0/56', 'fe80:0:0/48']],
])('connections from %s are counted as of %j', (address, networks) => expect(networksOf(address)).toEqual(networks));
