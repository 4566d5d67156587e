import { connect } from 'node:net';
import { once } from 'node:events';
import { eventually } from 'platform/service/test-end.ts';
import { serverToken } from 'platform/service/testing.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { freePorts } from '../../../test/support/addresses.ts';
import { scrape, sumOf } from '../../../test/support/scrape.ts';
import { startGatewayFixture, type GatewayFixture } from '../fixture.ts';

const LIST = '/api/memory/types';

/** @returns the gateway and where it tells its metrics */
async function start(env: Record<string, string>): Promise<{ fixture: GatewayFixture; at: string }> {
  const [port] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const fixture = await startGatewayFixture(
    {
      decide: ({ bearer }) =>
        bearer === 'bad' ? new ServiceError('UNAUTHENTICATED') : { ...serverToken('organization-1'), subject: bearer },
      // in a minute that does not pass
      clock: { now: () => 29_000_000 * 60_000 + 30_000 },
      memory: { listMemoryTypes: async () => ({ items: [] }) },
    },
    { GATEWAY_METRICS_LISTEN: at, ...env },
  );
  return { fixture, at };
}
let fixture: GatewayFixture;
let at: string;
beforeAll(async () => {
  ({ fixture, at } = await start({
    ...{ REQUESTS_PER_MINUTE: '5', STRANGER_REQUESTS_PER_MINUTE: '3' },
    ...{ MAX_CONNECTIONS: '64', CONNECTIONS_PER_ADDRESS: '32' },
  }));
});
afterAll(() => fixture.stop());

const valueOf = async (name: string, labels: Record<string, string> = {}) => sumOf(await scrape(at), name, labels) ?? 0;
const send = (token: string, path = LIST) => fixture.request(path, { token });

describe('the metrics of the gateway', () => {
  it('count requests over the limits of a token, of an organization and of an address', async () => {
    for (let n = 0; n < 8; n++) await send('one');
    expect(await valueOf('agentmemory_rate_denials_total', { limit: 'token' })).toBe(3);
    // the organization may make five times as many
    for (const token of ['two', 'three', 'four', 'five']) for (let n = 0; n < 5; n++) await send(token);
    for (let n = 0; n < 2; n++) await send('six');
    expect(await valueOf('agentmemory_rate_denials_total', { limit: 'organization' })).toBe(2);
    for (let n = 0; n < 4; n++) await send('bad');
    expect(await valueOf('agentmemory_rate_denials_total', { limit: 'address' })).toBe(1);
    const requests = (code: string) => valueOf('agentmemory_http_requests_total', { route: LIST, code });
    expect(await requests('rate_limited')).toBe(6);
    expect(await requests('unauthenticated')).toBe(3);
    expect(await requests('ok')).toBe(25);
  });

  it('know a path of a client, a verb of its own and a request that it broke by no name of it', async () => {
    expect((await send('two', '/what/a/client/likes')).status).toBe(404);
    const socket = connect(fixture.port, '127.0.0.1');
    socket.write('PROPFIND /api/memory/types HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await once(socket.resume(), 'close');
    const keys = [...(await scrape(at)).keys()];
    expect(
      keys.filter((key) => /client|PROPFIND/.test(key.replace('client_gone', '').replace(/^agentmemory_client/, ''))),
    ).toEqual([]);
    expect(await valueOf('agentmemory_http_requests_total', { verb: 'other', status: '405' })).toBe(1);
  });

  it('tell the connections that are open, and count those that are refused', async () => {
    const sockets = Array.from({ length: 40 }, () => connect(fixture.port, '127.0.0.1'));
    const closed = sockets.map((socket) => once(socket.resume(), 'close'));
    const refused = await eventually(async () => {
      const count = await valueOf('agentmemory_http_connections_refused_total');
      return count > 0 && count;
    });
    const open = await valueOf('agentmemory_http_connections');
    expect(open).toBeGreaterThan(0);
    expect(open).toBeLessThanOrEqual(40);
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
    expect(refused).toBeLessThanOrEqual(40);
    await eventually(async () => (await valueOf('agentmemory_http_connections')) < open);
  });

  it('tell that a service is out of reach, and which requests failed by that', async () => {
    const other = await start({});
    const read = async (name: string, labels: Record<string, string>) => sumOf(await scrape(other.at), name, labels);
    const streams = (service: string) => read('agentmemory_client_streams', { service });
    await eventually(async () => (await streams('memory')) === 1);
    await other.fixture.services.memory.drain(0);
    await eventually(async () => (await streams('memory')) === 0);
    expect(await streams('auth')).toBe(1);
    expect((await other.fixture.request(LIST)).status).toBe(503);
    const failed = { route: LIST, verb: 'GET', status: '503', code: 'unavailable' };
    expect(await read('agentmemory_http_requests_total', failed)).toBe(1);
    await other.fixture.stop();
  });
});
