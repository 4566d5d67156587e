import { once } from 'node:events';
import { connect } from 'node:net';
import { parseRaw, raw, startGatewayFixture, TOKEN } from '../fixture.ts';
import { beginRun, RUN, slowRun, untilArrived } from '../slow-run.ts';

describe('stop', () => {
  it('answers open requests, then closes their connections, and accepts no new ones', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    expect((await fixture.request('/healthz')).status).toBe(200);
    const request = fixture.request('/api/agent/run', RUN);
    await run.begun;
    const stopped = fixture.gateway.stop();
    await expect(raw(fixture.port)).rejects.toThrow('ECONNREFUSED');
    run.go();
    expect((await request).status).toBe(200);
    await stopped;
    await fixture.stop();
  });
  it('/readyz says that the gateway stops, on a connection that is left', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    expect((await fixture.request('/readyz', { token: '' })).json).toEqual({ status: 'ready' });
    const body = JSON.stringify(RUN.body);
    const head = `POST /api/agent/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
    const replies = raw(
      fixture.port,
      `${head}Content-Length: ${body.length}\r\n\r\n${body}`,
      'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    await run.begun;
    const stopped = fixture.gateway.stop();
    run.go();
    expect(await replies).toMatch(/^HTTP\/1.1 200 [^]*HTTP\/1.1 503 [^]*"code":"unavailable"/);
    await stopped;
    await fixture.stop();
  });
  it('answers 504 to requests still open after DRAIN_MS, begins none behind them, and does not cancel their calls', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs, { DRAIN_MS: '100' });
    const body = JSON.stringify(RUN.body);
    const request = (id: string) =>
      `POST /api/agent/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nX-Request-Id: ${id}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const halfSent = raw(fixture.port, request('unfinished').slice(0, -1));
    const received = raw(fixture.port, request('first'), request('second'));
    await run.begun;
    await fixture.gateway.stop();
    const replies = (await received).split(/(?=HTTP\/1\.1 )/).map(parseRaw);
    expect(
      replies.map(({ status, json, headers }) => [
        status,
        json.code,
        json.requestId,
        headers.get('connection') === 'close',
      ]),
    ).toEqual([[504, 'outcome_unknown', 'first', true]]);
    expect(parseRaw(await halfSent).json.requestId).toBe('unfinished');
    await untilArrived(fixture.services.agents);
    run.go();
    expect(await run.ended).toBe('done');
    await fixture.stop();
  });
  it('does not cancel the call of a connection that closes during the drain', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    const leave = await beginRun(fixture, run);
    const stopped = fixture.gateway.stop();
    await leave();
    await untilArrived(fixture.services.agents);
    run.go();
    expect(await run.ended).toBe('done');
    await stopped;
    await fixture.stop();
  });
});

/** A connection of a client that keeps it. `ask` sends a request and resolves with its reply. */
async function keptConnection(port: number) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  return {
    closed,
    send: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`),
    async reply() {
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      const { status, headers } = parseRaw(bytes.toString());
      return { status, connection: headers.get('connection') };
    },
  };
}

describe('a client that keeps its connection', () => {
  const PATIENT = { KEEP_IDLE_MS: '600000', DRAIN_MS: '600000' };

  it('learns from the reply that is due when the gateway begins to stop that the connection ends with it', async () => {
    const listed = Promise.withResolvers<{ items: [] }>();
    const begun = Promise.withResolvers<void>();
    const listMemoryTypes = () => (begun.resolve(), listed.promise);
    const fixture = await startGatewayFixture({ memory: { listMemoryTypes } }, PATIENT);
    const kept = await keptConnection(fixture.port);
    kept.send('/api/memory/types');
    await begun.promise;
    const stopped = fixture.gateway.stop();
    listed.resolve({ items: [] });
    expect(await kept.reply()).toEqual({ status: 200, connection: 'close' });
    await Promise.all([kept.closed, stopped]);
    await fixture.stop();
  });

  it('and does not use it is not disconnected for KEEP_IDLE_MS: its next request is answered, which ends it', async () => {
    const fixture = await startGatewayFixture({ memory: { listMemoryTypes: async () => ({ items: [] }) } }, PATIENT);
    const [kept, other] = [await keptConnection(fixture.port), await keptConnection(fixture.port)];
    for (const each of [kept, other]) {
      each.send('/healthz');
      expect(await each.reply()).toEqual({ status: 200, connection: 'keep-alive' });
    }
    const stopped = fixture.gateway.stop();
    await expect(raw(fixture.port)).rejects.toThrow('ECONNREFUSED');
    kept.send('/api/memory/types');
    expect(await kept.reply()).toEqual({ status: 200, connection: 'close' });
    other.send('/readyz');
    expect(await other.reply()).toEqual({ status: 503, connection: 'close' });
    await Promise.all([kept.closed, other.closed, stopped]);
    await fixture.stop();
  });

  it('is answered also without KEEP_IDLE_MS, when its request has arrived before the connection is closed', async () => {
    const fixture = await startGatewayFixture({});
    const kept = await keptConnection(fixture.port);
    kept.send('/healthz');
    await kept.reply();
    const stopped = fixture.gateway.stop();
    // the gateway is busy until after the time at which it closes idle connections
    for (const until = performance.now() + 200; performance.now() < until;);
    kept.send('/healthz');
    expect(await kept.reply()).toEqual({ status: 200, connection: 'close' });
    await Promise.all([kept.closed, stopped]);
    await fixture.stop();
  });
});

it('takes connections for LISTEN_WHILE_UNREADY_MS, answers their requests, and says that it is not ready', async () => {
  const fixture = await startGatewayFixture({}, { LISTEN_WHILE_UNREADY_MS: '4000' });
  const stopped = fixture.gateway.stop();
  const ask = (path: string) => fixture.request(path, { token: '' });
  expect((await ask('/readyz')).status).toBe(503);
  const { status, headers } = await ask('/healthz');
  expect([status, headers.get('connection')]).toEqual([200, 'close']);
  await stopped;
  await expect(ask('/readyz')).rejects.toThrow();
  await fixture.stop();
});
