import { once } from 'node:events';
import { decodeJwt } from 'jose';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { exchange, openSocket, readReply } from '../support/raw-http.ts';
import { expectError } from '../support/expect-error.ts';
import { ROUTES } from '../support/routes.ts';
import { request, type Reply } from '../support/request.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const ORIGIN = 'https://console.example';
const PUBLIC_URL = 'https://api.example.com';

let stack: Stack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await startStack({
    env: { CORS_ORIGINS: `https://other.example,${ORIGIN}`, BODY_TIMEOUT_MS: '5000', PUBLIC_URL },
  });
  tenant = await stack.tenant();
});
afterAll(() => stack.stop());

const host = () => `Host: ${new URL(stack.baseUrl).host}`;
const bearer = () => `Authorization: Bearer ${tenant.token}`;
const bodyRoutes = ROUTES.filter(({ takesBody }) => takesBody);
const varying = /^(date|x-request-id|ratelimit.*|keep-alive|connection)$/;
const headersOf = ({ headers }: Reply) => Object.fromEntries([...headers].filter(([name]) => !varying.test(name)));
const send = (line: string, lines: readonly string[] = [], body = '') =>
  exchange(stack.baseUrl, [line, host(), bearer(), 'Connection: close', ...lines], body);

it('begins the URLs in replies, and names the issuer of JWTs, as PUBLIC_URL says', async () => {
  const { headers } = await tenant.request('POST', '/api/memory/types', { type: 'Note', jsonSchema: {} });
  expect(headers.get('location')).toMatch(new RegExp(`^${PUBLIC_URL}/api/memory/types/`));
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const { jwt } = await auth.issueJwt({ email: tenant.administrator }, stack.operator.as(tenant.organizationId));
  expect(decodeJwt(jwt)).toMatchObject({ iss: PUBLIC_URL, aud: PUBLIC_URL });
  expect((await request(stack.baseUrl, 'GET', '/api/auth/whoami', { token: jwt })).status).toBe(200);
});

describe('every route', () => {
  it.each(ROUTES)('answers OPTIONS without a token and lists its verbs in Allow: $name', async ({ path, verb }) => {
    const { status, headers, text } = await request(stack.baseUrl, 'OPTIONS', path);
    expect([status, text, headers.get('content-type'), headers.get('allow')?.split(', ')]).toEqual([
      204,
      '',
      null,
      expect.arrayContaining([verb, 'OPTIONS']),
    ]);
  });

  it.each(ROUTES.filter(({ verb }) => verb === 'GET'))(
    'answers HEAD like GET, without the body: $name',
    async ({ path }) => {
      const [head, get] = [await tenant.request('HEAD', path), await tenant.request('GET', path)];
      expect([head.status, head.text, headersOf(head)]).toEqual([get.status, '', headersOf(get)]);
    },
  );

  it.each(ROUTES)('answers in UTF-8 JSON that must not be cached or sniffed: $name', async ({ path, verb }) => {
    const { headers } = await request(stack.baseUrl, verb, path);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
  });

  it.each(ROUTES)('answers another verb with 405 and the verbs that it allows: $name', async ({ path }) => {
    const {
      headers: { get: _ },
      ...reply
    } = await request(stack.baseUrl, 'PROPFIND', path);
    const allow = (await request(stack.baseUrl, 'OPTIONS', path)).headers.get('allow')?.split(', ');
    expect([reply.status, reply.body.code, reply.body.allow]).toEqual([405, 'method_not_allowed', allow]);
  });
});

describe.each(bodyRoutes)('the body of $name', ({ path, verb }) => {
  const write = (body: string, headers?: Record<string, string>) => tenant.request(verb, path, body, headers);

  it.each<[string, string, string]>([
    ['the same name twice', '{"a":{"b":1,"b":1}}', '/a/b'],
    ['the same name twice, once escaped', '{"b":1,"\\u0062":2}', '/b'],
    ['a member named __proto__', '{"a":[{"__proto__":{}}]}', '/a/0/__proto__'],
    ['NUL in a string', '{"a":"\\u0000"}', '/a'],
    ['NUL in a name', '{"a\\u0000":1}', '/a\u0000'],
    ['a lone surrogate', '{"a":"\\ud800"}', '/a'],
    ['65 levels of nesting', '{"a":'.repeat(65) + '1' + '}'.repeat(65), '/a'.repeat(64)],
    ['an integer beyond 2^53', '{"a":9007199254740992}', '/a'],
    ['the integer 1e16', '{"a":[0,1e16]}', '/a/1'],
    ['an integer of a hundred digits', `{"a":-1${'0'.repeat(99)}}`, '/a'],
    ['a number that overflows', '{"a":1e400}', '/a'],
    ['an array', '[]', ''],
    ['null', 'null', ''],
    ['a string', '"{}"', ''],
  ])('400: rejects %s', async (_what, body, at) => expectError(await write(body), 400, 'invalid_request', { at }));

  it.each(['', '{', '{"a":1}x', "{'a':1}", '{"a":01}', '{"a":NaN}', '\ufeff{}', '{"a":"\n"}'])(
    '400: rejects what is not JSON: %j',
    async (body) => expectError(await write(body), 400, 'malformed_json'),
  );

  it('400: rejects what is not UTF-8', async () => {
    const socket = await openSocket(stack.baseUrl);
    const reply = readReply(socket);
    socket.write(
      `${verb} ${path} HTTP/1.1\r\n${host()}\r\n${bearer()}\r\nConnection: close\r\n` +
        `Content-Type: application/json\r\nContent-Length: 9\r\n\r\n`,
    );
    socket.write(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]));
    expectError(await reply, 400, 'malformed_json');
  });

  it.each<[string, Record<string, string>]>([
    ['plain text', { 'Content-Type': 'text/plain' }],
    ['a form', { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['another charset', { 'Content-Type': 'application/json; charset=latin1' }],
    ['a content encoding', { 'Content-Encoding': 'gzip' }],
  ])('415: rejects %s', async (_what, headers) =>
    expectError(await write('{}', headers), 415, 'unsupported_media_type'),
  );

  it('413: rejects more than 1 MiB, with Content-Length or chunked', async () => {
    const tooLarge = ' '.repeat(1_048_575) + '{}';
    expectError(await write(tooLarge), 413, 'body_too_large');
    const chunk = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`;
    expectError(
      await send(
        `${verb} ${path} HTTP/1.1`,
        ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
        `${chunk.repeat(16)}2\r\n{}\r\n0\r\n\r\n`,
      ),
      413,
      'body_too_large',
    );
  });

  it('accepts exactly 1 MiB', async () =>
    expect((await write(' '.repeat(1_048_574) + '{}')).body.code).not.toBe('body_too_large'));
});

describe('X-Request-Id', () => {
  it.each(['a', 'trace_7.B-9', 'x'.repeat(64)])('is returned as it was sent: %s', async (id) => {
    const reply = await request(stack.baseUrl, 'GET', '/nowhere', { headers: { 'X-Request-Id': id } });
    expect([reply.headers.get('x-request-id'), reply.body.requestId]).toEqual([id, id]);
    expect(
      (await tenant.request('GET', '/api/memory/types', undefined, { 'X-Request-Id': id })).headers.get('x-request-id'),
    ).toBe(id);
  });

  it.each(['a b', 'é', 'x'.repeat(65), '', 'a/b'])('is replaced by a new one when it is malformed: %j', async (id) => {
    expect(
      (await request(stack.baseUrl, 'GET', '/healthz', { headers: { 'X-Request-Id': id } })).headers.get(
        'x-request-id',
      ),
    ).toMatch(/^[\w.-]{1,64}$/);
  });
});

describe('CORS', () => {
  const preflight = (origin: string) =>
    request(stack.baseUrl, 'OPTIONS', '/api/agent/run', {
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    });

  it('allows a configured origin to send requests and read replies', async () => {
    const { status, headers } = await preflight(ORIGIN);
    expect([status, headers.get('access-control-allow-origin'), headers.get('access-control-allow-methods')]).toEqual([
      204,
      ORIGIN,
      expect.stringContaining('POST'),
    ]);
    expect(headers.get('access-control-allow-headers')).toMatch(/authorization/i);
    expect(
      (await tenant.request('GET', '/api/memory/types', undefined, { Origin: ORIGIN })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBe(ORIGIN);
  });

  it.each(['https://evil.example', 'null', `${ORIGIN}.evil.example`])('sends no CORS headers to %s', async (origin) => {
    expect([...(await preflight(origin)).headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
  });
});

describe('malformed and unknown requests', () => {
  it.each([
    '/api',
    '/api/',
    '/api/agent',
    '/api/agent/run/',
    '/api/memory/types/a/b',
    '/API/agent/run',
    '//api/agent/run',
    '/api/agent/..',
    '/%61pi/agent/run',
    '/constructor',
  ])('404: %s, with a token or without', async (path) => {
    for (const headers of [[bearer()], []]) {
      expectError(
        await exchange(stack.baseUrl, [`GET ${path} HTTP/1.1`, host(), 'Connection: close', ...headers]),
        404,
        'not_found',
      );
    }
  });

  it.each(['NONSENSE', 'GET /healthz HTTP/9.9', 'GET /hea lth HTTP/1.1', '\x00\x01\x02', 'FETCH /healthz HTTP/1.1'])(
    '400: the request line %j',
    async (line) => {
      expectError(await exchange(stack.baseUrl, [line, host(), 'Connection: close']), 400, 'invalid_request');
    },
  );

  it('400: a request without Host, or with a malformed Host', async () => {
    for (const lines of [[], ['Host: a b'], ['Host: a/b']])
      expectError(
        await exchange(stack.baseUrl, ['GET /healthz HTTP/1.1', 'Connection: close', ...lines]),
        400,
        'invalid_request',
      );
  });

  it.each(['%ZZ', '%ff', '%00'])('404: the id %s, but 401 without a token', async (id) => {
    for (const path of [`/api/memory/types/${id}`, `/api/memory/objects/${id}`, `/api/agent/executions/${id}`]) {
      expectError(await send(`GET ${path} HTTP/1.1`), 404, 'not_found');
      expectError(
        await exchange(stack.baseUrl, [`GET ${path} HTTP/1.1`, host(), 'Connection: close']),
        401,
        'unauthenticated',
      );
    }
  });

  it('400: both Content-Length and Transfer-Encoding', async () => {
    expectError(
      await send(
        'POST /api/memory/types HTTP/1.1',
        ['Content-Type: application/json', 'Content-Length: 2', 'Transfer-Encoding: chunked'],
        '0\r\n\r\n',
      ),
      400,
      'invalid_request',
    );
  });

  it('431: headers over their limit', async () =>
    expectError(await send('GET /healthz HTTP/1.1', [`X-Large: ${'x'.repeat(40_000)}`]), 431, 'headers_too_large'));

  it('CONNECT is answered with 405, OPTIONS * with 204, both with the same Allow', async () => {
    const connect = await exchange(stack.baseUrl, ['CONNECT example.com:443 HTTP/1.1', 'Host: example.com:443']);
    expect([connect.status, connect.headers.get('allow')]).toEqual([405, expect.stringContaining('PATCH')]);
    const options = await exchange(stack.baseUrl, ['OPTIONS * HTTP/1.1', host(), 'Connection: close']);
    expect([options.status, options.headers.get('allow')]).toEqual([204, connect.headers.get('allow')]);
  });

  it('408: a body that does not arrive, and headers that do not end', async () => {
    const [slowBody, slowHeaders] = await Promise.all([openSocket(stack.baseUrl), openSocket(stack.baseUrl)]);
    const replies = [readReply(slowBody), readReply(slowHeaders)];
    slowBody.write(
      `POST /api/memory/types HTTP/1.1\r\n${host()}\r\n${bearer()}\r\n` +
        `Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{`,
    );
    slowHeaders.write('GET /healthz HTTP/1.1\r\nHost:');
    for (const reply of await Promise.all(replies)) expectError(reply, 408, 'request_timeout');
  });

  it('an aborted request does not disturb the next one, on another connection', async () => {
    const socket = await openSocket(stack.baseUrl);
    socket.write('POST /api/memory/types HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"a"');
    socket.destroy();
    await once(socket, 'close');
    const health = await request(stack.baseUrl, 'GET', '/healthz');
    expect([health.status, health.body]).toEqual([200, { status: 'ok' }]);
  });
});
