import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import { StartError } from 'platform/core/start-error.ts';
import { errorReply } from '../src/http/errors.ts';
import { beginExchange, type GatewayRequest, type Policy } from '../src/http/exchange.ts';
import { hostPipeline, type ErrorHandler, type PolicyName } from '../src/host/plugin.ts';
import { sendReply } from '../src/http/reply.ts';
import { log, parseRaw, raw, startGatewayFixture, TOKEN } from './fixture.ts';

const RESPONSE = {
  success: true,
  sessionId: 'api-1',
  agentExecutionId: 'e',
  agent: 'a',
  output: '1',
  messages: [],
  idempotencyReplayed: undefined,
  creditsCharged: '1',
};

/** A run that ends when `go` is called. `begun` resolves when it starts, `ended` says how it ended. */
function slowRun() {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<'done' | 'cancelled'>();
  const runAgent = async (_request: unknown, { signal }: { signal: AbortSignal }) => {
    begun.resolve();
    signal.addEventListener('abort', () => ended.resolve('cancelled'));
    await go.promise;
    ended.resolve('done');
    return RESPONSE;
  };
  return { begun: begun.promise, go: go.resolve, ended: ended.promise, stubs: { agents: { runAgent } } };
}
/** Resolves when everything sent to a service before has arrived there, such as a cancellation. */
async function untilArrived({ address }: { address: string }): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const socket = connect(Number(address.slice(address.lastIndexOf(':') + 1)), '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    await once(socket, 'close');
  }
}
const RUN = { method: 'POST', body: { agentName: 'a', args: null } };

describe('a client that disconnects', () => {
  it('cancels its call', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    const aborter = new AbortController();
    const request = fixture.request('/api/agent/run', { ...RUN, signal: aborter.signal });
    await run.begun;
    aborter.abort();
    await expect(request).rejects.toThrow();
    expect(await run.ended).toBe('cancelled');
    run.go();
    await fixture.stop();
  });
  it('cancels its call also when it has sent more requests than the gateway reads ahead', async () => {
    const run = slowRun();
    const fixture = await startGatewayFixture(run.stubs);
    const body = JSON.stringify(RUN.body);
    const socket = connect(fixture.port, '127.0.0.1');
    socket.write(
      `POST /api/agent/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    // written to the end: the gateway has read all but what the kernel's buffers hold
    await new Promise<void>((resolve) => {
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500_000), () => resolve());
    });
    await run.begun;
    socket.destroy();
    expect(await run.ended).toBe('cancelled');
    run.go();
    await fixture.stop();
  });
  it('does not cancel a call with an Idempotency-Key, and the gateway waits for it before it stops', async () => {
    const [keyed, other] = [slowRun(), slowRun()];
    const fixture = await startGatewayFixture({
      agents: {
        runAgent: (request, context) =>
          (request.idempotencyKey === undefined ? other : keyed).stubs.agents.runAgent(request, context),
      },
    });
    const leave = async (headers: Record<string, string>, { begun }: { begun: Promise<void> }) => {
      const aborter = new AbortController();
      const request = fixture.request('/api/agent/run', { ...RUN, headers, signal: aborter.signal });
      await begun;
      aborter.abort();
      await expect(request).rejects.toThrow();
    };
    await leave({ 'idempotency-key': 'k' }, keyed);
    await leave({}, other);
    // the gateway's calls share one connection, so a cancellation of the first would have arrived before this one
    expect(await other.ended).toBe('cancelled');
    other.go();
    const stopped = fixture.stop();
    const run = keyed;
    run.go();
    expect(await run.ended).toBe('done');
    await stopped;
  });
});

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
    const aborter = new AbortController();
    const request = fixture.request('/api/agent/run', { ...RUN, signal: aborter.signal });
    await run.begun;
    const stopped = fixture.gateway.stop();
    aborter.abort();
    await expect(request).rejects.toThrow();
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

it('answers 503 with Retry-After while a service is down, and 200 once it is back', async () => {
  let down = true;
  const fixture = await startGatewayFixture({
    memory: {
      listMemoryTypes: () => (down ? Promise.reject(new ServiceError('UNAVAILABLE')) : Promise.resolve({ items: [] })),
    },
  });
  const refused = await fixture.request('/api/memory/types');
  expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
  down = false;
  expect((await fixture.request('/api/memory/types')).status).toBe(200);
  await fixture.services.memory.drain(0);
  expect((await fixture.request('/api/memory/types')).status).toBe(503);
  expect(
    (await fixture.request('/api/memory/types', { method: 'POST', body: { type: 't', jsonSchema: {} } })).status,
  ).toBe(503);
  await fixture.stop();
});

it('reports a port in use in one sentence', async () => {
  const fixture = await startGatewayFixture({});
  const second = startGatewayFixture({}, { GATEWAY_LISTEN: `127.0.0.1:${fixture.port}` });
  await expect(second).rejects.toThrow(
    new StartError(`The address 127.0.0.1:${fixture.port} is in use by another program; GATEWAY_LISTEN sets another`),
  );
  await fixture.stop();
});

describe('the pipeline', () => {
  const pass: Policy = (_req, _res, next) => next();
  const policiesWith = (given: Partial<Record<PolicyName, Policy>>): Record<PolicyName, Policy> => ({
    'find-route': pass,
    authenticate: pass,
    'limit-rates': pass,
    admit: pass,
    'read-body': pass,
    'call-service': pass,
    ...given,
  });
  const onError: ErrorHandler = (error, req, res) => sendReply(req, res, errorReply(error, req.exchange, log));

  async function answerOf(handle: RequestListener): Promise<{ status: number; json: unknown }> {
    const server = createServer((req, res) => {
      (req as GatewayRequest).exchange = beginExchange(req, new Set());
      handle(req, res);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const response = await fetch(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
    const json: unknown = await response.json();
    server.closeAllConnections();
    server.close();
    return { status: response.status, json };
  }

  it.each<[string, Policy]>([
    ['rejects', () => Promise.reject(new Error('secret'))],
    ['rejects with null', () => Promise.reject(null)],
    ['rejects with the word that Express takes for "skip"', () => Promise.reject('router')],
    [
      'rejects in a later event-loop turn',
      () =>
        new Promise((_, reject) => {
          setImmediate(() => reject(new Error('secret')));
        }),
    ],
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined;
      },
    ],
  ])('answers 500 in JSON when a policy %s', async (_, policy) => {
    for (const name of ['find-route', 'call-service'] as const) {
      const { status, json } = await answerOf(await hostPipeline(policiesWith({ [name]: policy }), onError));
      expect({ status, json }).toEqual({
        status: 500,
        json: { error: 'Unexpected server error', code: 'internal', requestId: expect.any(String) },
      });
    }
  });
  it('answers 404 when no policy answers', async () => {
    expect((await answerOf(await hostPipeline(policiesWith({}), onError))).status).toBe(404);
  });
  it.each([
    ['in another order', '[{find-route: }, {admit: }, {authenticate: }, {read-body: }, {call-service: }]'],
    ['without one of them', '[{find-route: }, {admit: }, {read-body: }, {call-service: }]'],
    [
      'with one under a condition that is never true',
      '[{find-route: }, {authenticate: [{condition: {name: never}}]}, {admit: }, {read-body: }, {call-service: }]',
    ],
    ['not mounted at all', '[]'],
  ])('does not start with policies %s', async (_, policies) => {
    const file = join(mkdtempSync(join(tmpdir(), 'gateway-')), 'gateway.config.yml');
    writeFileSync(
      file,
      `apiEndpoints: {rest: {host: '*', pathRegex: '.*'}}\npolicies: [find-route, authenticate, admit, read-body, call-service]\npipelines: {rest: {apiEndpoints: [rest], policies: ${policies}}}\n`,
    );
    await expect(hostPipeline(policiesWith({}), onError, file)).rejects.toThrow('is not the expected one');
  });
});
