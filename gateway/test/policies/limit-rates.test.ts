import { connect } from 'node:net';
import type { Denial } from 'proto/auth/v1/auth.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { Principal } from 'platform/core/principal.ts';
import { serverToken } from 'platform/service/testing.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startGatewayFixture, type GatewayFixture } from '../fixture.ts';

const LIST = '/api/memory/types';
const asked: string[] = [];
const revoked = new Set<string>();
const denials: Denial[] = [];
/** Tokens "a1", "a2" are of organization a. Organization "e" has a tier with a factor. */
const principalOf = (bearer: string): Principal => ({
  ...serverToken(`organization-${bearer[0]}`),
  subject: bearer,
  name: `token ${bearer}`,
  limits: bearer.startsWith('e') ? { rate_factor: 10 } : {},
});
let hold: Promise<void> | undefined;
/** Calls of auth, and what its next decisions wait for. */
let batches = 0;
let holdDecision: Promise<void> | undefined;
/** In the middle of a minute that does not pass. */
const clock = { now: () => 29_000_000 * 60_000 + 30_000 };

async function start(env: Record<string, string>): Promise<GatewayFixture> {
  return startGatewayFixture(
    {
      decide({ bearer }) {
        asked.push(bearer);
        if (bearer.startsWith('unknown') || revoked.has(bearer)) return new ServiceError('UNAUTHENTICATED');
        if (bearer.startsWith('unlicensed')) return new ServiceError('TIER_REQUIRED');
        return principalOf(bearer);
      },
      clock,
      onBatch() {
        batches++;
        return holdDecision;
      },
      onDenials: (told) => denials.push(...told),
      memory: {
        listMemoryTypes: async () => {
          await hold;
          return { items: [] };
        },
      },
      agents: { runAgent: () => Promise.reject(new ServiceError('NOT_FOUND')) },
    },
    env,
  );
}
const statuses = async (fixture: GatewayFixture, token: string, count: number, path = LIST): Promise<number[]> =>
  (await Promise.all(Array.from({ length: count }, () => fixture.request(path, { token })))).map(
    ({ status }) => status,
  );
const countOf = (status: number, all: readonly number[]): number => all.filter((one) => one === status).length;

beforeEach(() => {
  asked.length = 0;
  batches = 0;
  denials.length = 0;
});

describe('limits of a minute', () => {
  let fixture: GatewayFixture;
  beforeEach(async () => {
    fixture = await start({ REQUESTS_PER_MINUTE: '10', RUNS_PER_MINUTE: '3', STRANGER_REQUESTS_PER_MINUTE: '5' });
  });
  afterEach(() => fixture.stop());

  it('a token gets 429 beyond its limit; every reply says what is left, and the refusal when to come again', async () => {
    const { status, headers } = await fixture.request(LIST, { token: 'a1' });
    expect(status).toBe(200);
    expect(headers.get('ratelimit-policy')).toBe('"token";q=10;w=60, "organization";q=50;w=60');
    expect(headers.get('ratelimit')).toMatch(/^"token";r=9;t=\d+, "organization";r=49;t=\d+$/);
    const replies = await Promise.all(Array.from({ length: 20 }, () => fixture.request(LIST, { token: 'a1' })));
    const refused = replies.filter((reply) => reply.status === 429);
    expect(refused.length).toBe(11);
    const [first] = refused;
    expect(first?.json).toMatchObject({
      code: 'rate_limited',
      error: 'Too many requests with this token: at most 10 in a minute',
      limit: 'token',
    });
    expect(first?.headers.get('retry-after')).toBe('36');
    expect(first?.headers.get('ratelimit')).toContain('"token";r=0;');
  });

  it('the limit of one token leaves the others of its organization what that has left', async () => {
    for (const token of ['a1', 'a2', 'a3', 'a4', 'a5']) await statuses(fixture, token, 10);
    const reply = await fixture.request(LIST, { token: 'a6' });
    expect([reply.status, reply.json.limit]).toEqual([429, 'organization']);
    expect((await fixture.request(LIST, { token: 'b1' })).status).toBe(200);
  });

  it('the licence tier multiplies the limits, and runs count apart', async () => {
    const { headers } = await fixture.request(LIST, { token: 'e1' });
    expect(headers.get('ratelimit-policy')).toBe('"token";q=100;w=60, "organization";q=500;w=60');
    const run = { method: 'POST', token: 'b1', body: { agentName: 'a', args: null } };
    const policy = (await fixture.request('/api/agent/run', run)).headers.get('ratelimit-policy');
    expect(policy).toBe('"token";q=3;w=60, "organization";q=15;w=60');
  });

  it('tells auth of refusals of known tokens, counted together', async () => {
    const replies = await statuses(fixture, 'a1', 30);
    replies.push(...(await statuses(fixture, 'a1', 2, `${LIST}/id`)));
    await fixture.stop();
    const noted = denials.filter(({ code }) => code === 'rate_limited');
    expect(noted[0]).toMatchObject({
      organizationId: 'organization-a',
      actorKind: 'server_token',
      actorId: 'a1',
      actorName: 'token a1',
      method: '/memory.v1.MemoryService/ListMemoryTypes',
      methods: ['/memory.v1.MemoryService/ListMemoryTypes', '/memory.v1.MemoryService/GetMemoryType'],
    });
    expect(noted.map(({ count }) => count)).toEqual([countOf(429, replies)]);
  });

  it('a flood of bad tokens is not passed on to auth, and leaves good tokens of the same address alone', async () => {
    await fixture.request(LIST, { token: 'a1' });
    asked.length = 0;
    for (let i = 0; i < 5; i++) await fixture.request(LIST, { token: `unknown${i}` });
    const flood = await Promise.all(
      Array.from({ length: 100 }, (_, i) => fixture.request(LIST, { token: `unknown${i}` })),
    );
    expect(flood.every(({ json }) => json.code === 'rate_limited' && json.limit === 'address')).toBe(true);
    expect(asked.length).toBe(5);
    expect((await fixture.request(LIST, { token: 'a1' })).status).toBe(200);
  });

  it('a token that is revoked is a stranger from its next request on', async () => {
    await fixture.request(LIST, { token: 'b9' });
    for (let i = 0; i < 5; i++) await fixture.request(LIST, { token: `unknown${i}` });
    revoked.add('b9');
    asked.length = 0;
    const replies = [await fixture.request(LIST, { token: 'b9' }), await fixture.request(LIST, { token: 'b9' })];
    expect(replies.map(({ status }) => status)).toEqual([401, 429]);
    expect(asked).toEqual(['b9']);
  });

  it('requests without a token count, too, and say what is left', async () => {
    const first = await fixture.request(LIST, { token: '' });
    expect([first.status, first.headers.get('ratelimit-policy')]).toEqual([401, '"address";q=5;w=60']);
    for (let i = 0; i < 5; i++) await fixture.request(LIST, { token: '' });
    const last = await fixture.request(LIST, { token: '' });
    expect(last.status).toBe(429);
    expect(asked).toEqual([]);
  });

  it('a token without the licence is not asked about for ever, and works elsewhere', async () => {
    for (let i = 0; i < 30; i++) await fixture.request(LIST, { token: 'unlicensed' });
    expect(asked.length).toBe(5);
    expect((await fixture.request('/api/memory/objects', { token: 'unlicensed' })).status).toBe(403);
  });

  it('public routes and probes are not limited', async () => {
    expect(countOf(200, await statuses(fixture, '', 50, '/healthz'))).toBe(50);
  });
});

it('bounds the requests of a token and of an organization that are under way', async () => {
  const fixture = await start({ REQUESTS_AT_ONCE: '3' });
  const gate = Promise.withResolvers<void>();
  hold = gate.promise;
  const send = (token: string) => fixture.request(LIST, { token });
  const first = ['a1', 'a1', 'a1'].map(send);
  await eventually(() => asked.length === 3);
  const refused = await send('a1');
  expect(refused.json).toMatchObject({ code: 'too_many_requests', limit: 'token' });
  gate.resolve();
  hold = undefined;
  expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await send('a1')).status).toBe(200);
  await fixture.stop();
});

it('a request whose client has left before auth decides is not under way for ever', async () => {
  const fixture = await start({ REQUESTS_AT_ONCE: '1' });
  const gate = Promise.withResolvers<void>();
  holdDecision = gate.promise;
  const socket = connect(fixture.port, '127.0.0.1').on('error', () => undefined);
  socket.write(`GET ${LIST} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a1\r\n\r\n`);
  await eventually(() => batches === 1);
  socket.resetAndDestroy();
  // by its answer the gateway has also seen that the older connection is closed
  await fixture.request('/healthz', { token: '' });
  holdDecision = undefined;
  gate.resolve();
  await eventually(async () => (await fixture.request(LIST, { token: 'a1' })).status === 200);
  await fixture.stop();
});

it('behind a trusted proxy the address of the client counts', async () => {
  const fixture = await start({ STRANGER_REQUESTS_PER_MINUTE: '2', TRUSTED_PROXIES: '1' });
  const from = async (address: string) =>
    (await fixture.request(LIST, { token: 'unknown', headers: { 'x-forwarded-for': address } })).status;
  const flood: number[] = [];
  for (let i = 0; i < 3; i++) flood.push(await from('203.0.113.7'));
  expect(flood).toEqual([401, 401, 429]);
  expect(await from('203.0.113.8')).toBe(401);
  expect(await from('[2001:db8::1]:4711')).toBe(401);
  await fixture.stop();
});
