import { once } from 'node:events';
import { connect } from 'node:net';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import { raw, startGatewayFixture, PRINCIPAL, TOKEN, type GatewayFixture } from '../fixture.ts';

const batches: string[][] = [];
const revoked = new Set<string>();
const seen: { principal: Principal; requestId: string }[] = [];
let holdBatch: Promise<void> | undefined;
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture({
    onBatch: (attempts) => {
      batches.push(attempts.map(({ method }) => method));
      return holdBatch;
    },
    decide: ({ bearer }) => {
      if (bearer === 'user') return new ServiceError('ADMIN_REQUIRED');
      if (bearer === 'starter') return new ServiceError('TIER_REQUIRED');
      if (bearer === 'loud')
        return new ServiceError('UNAUTHENTICATED', 'This token was revoked at noon', { facts: { revokedAt: 'noon' } });
      return bearer.startsWith(TOKEN) && !revoked.has(bearer) ? PRINCIPAL : new ServiceError('UNAUTHENTICATED');
    },
    memory: {
      listMemoryTypes: async (_request, { principal, requestId, caller }) => {
        expect(caller).toBe('gateway');
        seen.push({ principal, requestId });
        return { items: [] };
      },
      createMemoryObject: () => Promise.reject(new ServiceError('NOT_FOUND')),
    },
  });
});
afterAll(() => fixture.stop());
beforeEach(() => {
  batches.length = 0;
});

describe('a token', () => {
  it("determines the principal of the service's call, which also carries the request id", async () => {
    const reply = await fixture.request('/api/memory/types', { headers: { 'x-request-id': 'my-id.1' } });
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-request-id')).toBe('my-id.1');
    expect(seen.at(-1)).toEqual({ principal: PRINCIPAL, requestId: 'my-id.1' });
  });
  it('is sent to auth with the full name of the method', async () => {
    await fixture.request('/api/memory/types');
    expect(batches).toEqual([['/memory.v1.MemoryService/ListMemoryTypes']]);
  });
  it('that is missing, malformed, unknown or revoked gets the same 401', async () => {
    const headers = [
      {},
      { authorization: 'Basic x' },
      { authorization: 'Bearer' },
      { authorization: 'Bearer a b' },
      { authorization: `Bearer ${'x'.repeat(5000)}` },
      { authorization: 'Bearer unknown' },
      { authorization: 'Bearer loud' },
    ];
    const replies = await Promise.all(
      headers.map((given) =>
        fixture.request('/api/memory/types', {
          token: '',
          headers: { 'x-request-id': 'same', ...given } as Record<string, string>,
        }),
      ),
    );
    expect(new Set(replies.map(({ text }) => text))).toEqual(
      new Set(['{"error":"Missing or invalid token","code":"unauthenticated","requestId":"same"}']),
    );
    for (const { status, headers: got } of replies) {
      expect(status).toBe(401);
      expect(got.get('www-authenticate')).toBe('Bearer');
    }
  });
  it('may have its scheme in any letter case', async () => {
    expect(
      (await fixture.request('/api/memory/types', { token: '', headers: { authorization: `bEARER  ${TOKEN}` } }))
        .status,
    ).toBe(200);
  });
  it('that is malformed is rejected without a call to auth', async () => {
    await fixture.request('/api/memory/types', { token: '', headers: { authorization: 'Bearer ä' } });
    expect(batches).toEqual([]);
  });
});

describe('the order of checks', () => {
  const order = (path: string, options: Parameters<GatewayFixture['request']>[1]) =>
    fixture.request(path, options).then(({ status, json }) => [status, json.code]);
  const bad = { method: 'POST', body: '{', headers: { 'content-type': 'text/plain' } };

  it('route before token', async () => {
    expect(await order('/nope', { token: '' })).toEqual([404, 'not_found']);
    expect(await order('/api/memory/types/x', { method: 'PATCH', token: '' })).toEqual([405, 'method_not_allowed']);
  });
  it('two Authorization headers before the token', async () => {
    const reply = await raw(
      fixture.port,
      `GET /api/memory/types HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer nope\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`,
    );
    expect(reply).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_request"/);
    expect(batches).toEqual([]);
  });
  it('token, tier and role before media type and body', async () => {
    expect(await order('/api/memory/objects', { ...bad, token: 'nope' })).toEqual([401, 'unauthenticated']);
    expect(await order('/api/memory/objects', { ...bad, token: 'starter' })).toEqual([403, 'tier_required']);
    const reply = await fixture.request('/api/memory/objects', { ...bad, token: 'user' });
    expect([reply.status, reply.json.error]).toEqual([403, 'Admin access required']);
  });
  it('media type before body, body before existence', async () => {
    expect(await order('/api/memory/objects', bad)).toEqual([415, 'unsupported_media_type']);
    expect(await order('/api/memory/objects', { method: 'POST', body: '{' })).toEqual([400, 'malformed_json']);
    expect(await order('/api/memory/objects', { method: 'POST', body: { content: {}, nope: 1 } })).toEqual([
      400,
      'invalid_request',
    ]);
    expect(await order('/api/memory/objects', { method: 'POST', body: { content: {} } })).toEqual([404, 'not_found']);
  });
  it('health and OPTIONS need no token', async () => {
    expect((await fixture.request('/healthz', { token: '' })).json).toEqual({ status: 'ok' });
    expect((await fixture.request('/api/memory/types', { method: 'OPTIONS', token: '' })).status).toBe(204);
    expect(batches).toEqual([]);
  });
});

describe('look-ups', () => {
  it('of many connections at once each get their own decision, however they are batched', async () => {
    const hold = Promise.withResolvers<void>();
    holdBatch = hold.promise;
    const requests = Array.from({ length: 40 }, (_, index) =>
      fixture.request('/api/memory/types', { token: index % 2 ? TOKEN : 'nope' }),
    );
    hold.resolve();
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    holdBatch = undefined;
    expect(statuses).toEqual(Array.from({ length: 40 }, (_, index) => (index % 2 ? 200 : 401)));
    expect(batches.flat().length).toBe(40);
  });
  it('of one event-loop turn share calls of at most 100, and each gets its own decision', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 250 }, async () => {
        const socket = connect(fixture.port, '127.0.0.1');
        await once(socket, 'connect');
        return socket;
      }),
    );
    // the gateway has accepted all of them when it answers on a later one
    await raw(fixture.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const isGood = (index: number) => index % 3 === 0;
    const replies = sockets.map(async (socket, index) => {
      let reply = '';
      socket.on('data', (chunk) => (reply += chunk.toString()));
      socket.write(
        `GET /api/memory/types HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-${index}\r\nConnection: close\r\nAuthorization: Bearer ${isGood(index) ? TOKEN : 'nope'}-${index}\r\n\r\n`,
      );
      await once(socket, 'close');
      return [reply.split(' ')[1], /x-request-id: (.*)\r/.exec(reply)?.[1]];
    });
    expect(await Promise.all(replies)).toEqual(
      sockets.map((_, index) => [isGood(index) ? '200' : '401', `r-${index}`]),
    );
    expect(batches.flat().length).toBe(250);
    expect(Math.max(...batches.map(({ length }) => length))).toBe(100);
  });
  it('are never cached: a token is rejected as soon as it is revoked', async () => {
    const token = `${TOKEN}-2`;
    for (let round = 0; round < 20; round++) {
      revoked.delete(token);
      expect((await fixture.request('/api/memory/types', { token })).status).toBe(200);
      revoked.add(token);
      expect((await fixture.request('/api/memory/types', { token })).status).toBe(401);
    }
    expect(batches.length).toBe(40);
  });
});

it('answers 503 with Retry-After, never 401, while auth is down', async () => {
  const withoutAuth = await startGatewayFixture({});
  await withoutAuth.services.auth.drain(0);
  const reply = await withoutAuth.request('/api/memory/types');
  await withoutAuth.stop();
  expect([reply.status, reply.json.code, reply.headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
});
