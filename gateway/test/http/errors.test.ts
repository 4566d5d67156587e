import { ServiceError } from 'platform/core/errors.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { parseRaw, raw, startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const never = new Promise<never>(() => undefined);
const errors: Record<string, unknown> = {
  full: new ServiceError('QUEUE_FULL', undefined, { headers: { 'Retry-After': '7' } }),
  unknown: new ServiceError('OUTCOME_UNKNOWN'),
  taken: new ServiceError('ALREADY_EXISTS', 'Taken', {
    facts: { id: 'x' },
    details: [{ path: '/type', message: 'is taken' }],
  }),
  bug: new TypeError('secret text of a bug'),
  identity: new ServiceError('UNAUTHENTICATED', 'The call carries no valid identity'),
};
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture(
    {
      memory: {
        getMemoryType: ({ id }) =>
          id === 'hangs' ? never : Promise.reject(errors[id] ?? new ServiceError('NOT_FOUND', id)),
        createMemoryObject: () => Promise.reject(new ServiceError('NOT_FOUND')),
      },
    },
    { MAX_BODY_BYTES: '4096' },
  );
});
afterAll(() => fixture.stop());

const expectError = (
  reply: { status: number; headers: Headers; json: Record<string, unknown> },
  status: number,
  code: string,
) => {
  expect({ status: reply.status, code: reply.json.code }).toEqual({ status, code });
  expect(typeof reply.json.error).toBe('string');
  expect(reply.json.requestId).toBe(reply.headers.get('x-request-id'));
  expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(reply.headers.get('cache-control')).toBe('no-store');
  expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
};
const post = (body: unknown, headers: Record<string, string> = {}) =>
  fixture.request('/api/memory/objects', { method: 'POST', body, headers });

describe('every error is JSON with a code and the request id', () => {
  it('404 for an unknown path, in and outside /api, with and without a token', async () => {
    for (const path of [
      '/api/memory/type',
      '/api/memory/types/',
      '/api//memory/types',
      '/API/memory/types',
      '/nope?x=%ZZ',
    ]) {
      expectError(await fixture.request(path), 404, 'not_found');
      expectError(await fixture.request(path, { token: '' }), 404, 'not_found');
    }
  });
  it('405 with Allow for a wrong method', async () => {
    const reply = await fixture.request('/api/memory/types/1', { method: 'POST', body: {} });
    expectError(reply, 405, 'method_not_allowed');
    expect(reply.headers.get('allow')?.split(', ').sort()).toEqual(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT']);
    expect(reply.json.allow).toEqual(reply.headers.get('allow')?.split(', '));
    expectError(await fixture.request('/healthz', { method: 'DELETE', token: '' }), 405, 'method_not_allowed');
  });
  it('passes an id with invalid percent-encoding to the service unchanged, after authentication', async () => {
    for (const id of ['%ZZ', '%ff', '%C3%28']) {
      const reply = await fixture.request(`/api/memory/types/${id}`);
      expectError(reply, 404, 'not_found');
      expect(reply.json.error).toBe(id);
      expectError(await fixture.request(`/api/memory/types/${id}`, { token: '' }), 401, 'unauthenticated');
    }
  });
  it('400 with at most 100 characters of a name', async () => {
    const name = `${'n'.repeat(98)}😀${'n'.repeat(1_000)}`;
    const shortened = `${'n'.repeat(98)}\ufffd…`;
    const inContent = `{"content":{"${name}":1,"${name}":1}}`;
    for (const [reply, path] of [
      [await post({ content: {}, [name]: 1 }), `/${shortened}`],
      [await post(inContent), `/content/${shortened}`],
      [await fixture.request(`/api/memory/objects?${encodeURIComponent(name)}=1`), `/${shortened}`],
    ] as const) {
      expectError(reply, 400, 'invalid_request');
      expect(reply.json.details).toEqual([{ path, message: expect.any(String) }]);
      expect(reply.text.length).toBeLessThan(600);
    }
  });
  it.each(['{', '{"a":1,}', 'no', ''])('400 for the body %j', async (body) => {
    expectError(await post(body), 400, 'malformed_json');
  });
  it.each([
    ['a duplicate name', '{"key":"a","key":"a"}', '/key'],
    ['a duplicate name inside the content', '{"content":{"a":{"b":1,"b":1}}}', '/content/a/b'],
    ['__proto__', '{"content":{"__proto__":{}}}', '/content/__proto__'],
    ['an integer that a double cannot represent', '{"content":{"n":9007199254740993}}', '/content/n'],
  ])('400 with the path of %s', async (_, body, path) => {
    const reply = await post(body);
    expectError(reply, 400, 'invalid_request');
    expect(reply.json.details).toEqual([{ path, message: expect.any(String) }]);
  });
  it.each<[string, Buffer<ArrayBuffer>, string]>([
    ['is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'The body is not valid UTF-8'],
    ['begins with a byte order mark', Buffer.from('\ufeff{}'), 'The body begins with a byte order mark'],
    ['is UTF-16', Buffer.from('\ufeff{}', 'utf16le'), 'The body is not valid UTF-8'],
    ['is UTF-16 without a mark', Buffer.from('{}', 'utf16le'), 'The body is not valid JSON'],
  ])('400 for a body that %s', async (_case, body, error) => {
    const response = await fetch(`${fixture.url}/api/memory/objects`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body,
    });
    const json = (await response.json()) as Record<string, unknown>;
    expectError({ status: response.status, headers: response.headers, json }, 400, 'malformed_json');
    expect(json.error).toBe(error);
  });
  it('400 for a JSON body that is no object', async () => {
    for (const body of ['[]', '1', 'null', '"x"']) expectError(await post(body), 400, 'invalid_request');
  });
  it.each([
    ['text/plain', 'The body must be application/json'],
    ['application/x-www-form-urlencoded', 'The body must be application/json'],
    ['application/merge-patch+json', 'The body must be application/json'],
    ['application/jsonx', 'The body must be application/json'],
    ['application/json; charset=latin1', 'The body must be in UTF-8'],
    ['application/json; charset=utf-8; charset="utf-16"', 'The body must be in UTF-8'],
  ])('415 for the media type %s', async (type, error) => {
    const reply = await post('{}', { 'content-type': type });
    expectError(reply, 415, 'unsupported_media_type');
    expect(reply.json.error).toBe(error);
  });
  it('415 for an encoded body', async () => {
    expectError(await post('{}', { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type');
  });
  it.each([
    'application/json',
    'application/json;charset=utf-8',
    'Application/JSON; charset="UTF-8"',
    'application/json; charset=utf8',
    'application/json; odata=verbose; charset = utf-8;',
  ])('no 415 for %s', async (type) => {
    expectError(await post({ content: {} }, { 'content-type': type }), 404, 'not_found');
  });
  it('500 without details for a bug in a service', async () => {
    const reply = await fixture.request('/api/memory/types/bug');
    expectError(reply, 500, 'internal');
    expect(reply.json).toEqual({
      error: 'Unexpected server error',
      code: 'internal',
      requestId: reply.headers.get('x-request-id'),
    });
  });
  it("500, not 401, when a service rejects the gateway's own identity", async () => {
    const reply = await fixture.request('/api/memory/types/identity');
    expectError(reply, 500, 'internal');
    expect(reply.text).not.toContain('identity');
  });
  it('503 with the Retry-After of the service, 504 for an unknown outcome', async () => {
    const full = await fixture.request('/api/memory/types/full');
    expectError(full, 503, 'queue_full');
    expect(full.headers.get('retry-after')).toBe('7');
    expectError(await fixture.request('/api/memory/types/unknown'), 504, 'outcome_unknown');
  });
  it('503 when a service does not answer a read within the deadline', async () => {
    expectError(await fixture.request('/api/memory/types/hangs'), 503, 'unavailable');
  });
  it("an error's details and facts beside its message", async () => {
    const reply = await fixture.request('/api/memory/types/taken');
    expectError(reply, 409, 'already_exists');
    expect(reply.json).toEqual({
      error: 'Taken',
      code: 'already_exists',
      details: [{ path: '/type', message: 'type is taken' }],
      id: 'x',
      requestId: expect.stringMatching(UUID),
    });
  });
});

describe('a request that is too large, too slow or invalid is rejected in a way that its client can read', () => {
  const head = (extra: string): string =>
    `POST /api/memory/objects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n${extra}\r\n`;
  const expectRaw = (reply: string, status: number, code: string) => {
    const { json, headers, ...parsed } = parseRaw(reply);
    expect({ status: parsed.status, code: json.code }).toEqual({ status, code });
    expect(json.requestId).toBe(headers.get('x-request-id'));
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  };

  it('413 with a Content-Length: replies before the body ends, and the connection stays usable', async () => {
    const size = 2 << 20;
    const replies = await raw(
      fixture.port,
      head(`Content-Length: ${size}\r\n`),
      Buffer.alloc(size, 'a'),
      'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    const second = replies.indexOf('HTTP/1.1', 1);
    expectRaw(replies.slice(0, second), 413, 'body_too_large');
    expect(parseRaw(replies.slice(second)).json).toEqual({ status: 'ok' });
  });
  it('413 for a chunked body', async () => {
    async function* chunks() {
      for (let i = 0; i < 100; i++) yield Buffer.alloc(1024, 'a');
    }
    const response = await fetch(`${fixture.url}/api/memory/objects`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: ReadableStream.from(chunks()),
      duplex: 'half',
    });
    expectError(
      { status: response.status, headers: response.headers, json: (await response.json()) as Record<string, unknown> },
      413,
      'body_too_large',
    );
  });
  it('413 instead of 100 Continue', async () => {
    expectRaw(await raw(fixture.port, head('Content-Length: 5000\r\nExpect: 100-continue\r\n')), 413, 'body_too_large');
  });
  it('100 Continue only after token and size are accepted', async () => {
    const body = '{"content":1}';
    const reply = await raw(
      fixture.port,
      head(`Content-Length: ${body.length}\r\nConnection: close\r\nExpect: 100-continue\r\n`),
      body,
    );
    expect(reply.startsWith('HTTP/1.1 100 Continue\r\n\r\n')).toBe(true);
    expectRaw(reply.slice(reply.indexOf('\r\n\r\n') + 4), 404, 'not_found');
  });
  it('408 for a body, or headers, that do not arrive', async () => {
    const impatient = await startGatewayFixture({}, { BODY_TIMEOUT_MS: '400' });
    closedInTheEnd(impatient.stop);
    expectRaw(await raw(impatient.port, head('Content-Length: 100\r\n'), '{"a":'), 408, 'request_timeout');
    expectRaw(await raw(impatient.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: '), 408, 'request_timeout');
  });
  it('nothing after the reply to a request that was answered before its body, which never arrives', async () => {
    const impatient = await startGatewayFixture({}, { BODY_TIMEOUT_MS: '400' });
    closedInTheEnd(impatient.stop);
    const refused = head('Content-Length: 100\r\n').replace(TOKEN, 'unknown');
    expectRaw(await raw(impatient.port, refused, '{"a":'), 401, 'unauthenticated');
  });
  it('431 for headers that are too large', async () => {
    expectRaw(
      await raw(fixture.port, `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(20_000)}\r\n\r\n`),
      431,
      'headers_too_large',
    );
  });
  it('400 for what is not HTTP', async () => {
    expectRaw(await raw(fixture.port, 'garbage\r\n\r\n'), 400, 'invalid_request');
    expectRaw(await raw(fixture.port, 'FOO /healthz HTTP/1.1\r\nHost: x\r\n\r\n'), 400, 'invalid_request');
    expectRaw(await raw(fixture.port, head('Transfer-Encoding: chunked\r\n'), 'zz\r\n'), 400, 'invalid_request');
  });
  it.each([
    'HTTP/1.1',
    'HTTP/1.1\r\nHost:',
    'HTTP/1.1\r\nHost: a b',
    'HTTP/1.1\r\nHost: a/b',
    'HTTP/1.1\r\nHost: user@a',
    'HTTP/1.1\r\nHost: a:b',
    'HTTP/1.1\r\nHost: a:80:80',
    'HTTP/1.1\r\nHost: a:65536',
    'HTTP/1.1\r\nHost: a..b',
    'HTTP/1.1\r\nHost: [::1',
    'HTTP/1.1\r\nHost: [:::]',
    'HTTP/1.1\r\nHost: ::1',
    'HTTP/1.1\r\nHost: a, b',
    'HTTP/1.1\r\nHost: a\r\nHost: b',
    'HTTP/1.1\r\nHost: a\r\nhost: a',
    'HTTP/1.0\r\nHost: a/b',
    'HTTP/1.0\r\nHost: a\r\nHost: b',
  ])('400 for the Host of GET /healthz %j', async (lines) => {
    const reply = await raw(fixture.port, `GET /healthz ${lines}\r\nConnection: close\r\n\r\n`);
    expectRaw(reply, 400, 'invalid_request');
  });
  it.each(['x', 'api.example', 'api.example.:8443', '192.0.2.1:80', '[::1]', '[2001:db8::1]:8443', 'my_host'])(
    'no 400 for the Host %s',
    async (host) => {
      const reply = await raw(fixture.port, `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(parseRaw(reply).status).toBe(200);
    },
  );
  it('405 with Allow for CONNECT', async () => {
    const rejected = await raw(fixture.port, 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n');
    expectRaw(rejected, 405, 'method_not_allowed');
    const { headers, json } = parseRaw(rejected);
    expect(headers.get('allow')?.split(', ').sort()).toEqual([
      'DELETE',
      'GET',
      'HEAD',
      'OPTIONS',
      'PATCH',
      'POST',
      'PUT',
    ]);
    expect(json.allow).toEqual(headers.get('allow')?.split(', '));
    const asked = await raw(fixture.port, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(asked).toMatch(/^HTTP\/1\.1 204 /);
    expect(asked).toContain(`\r\nallow: ${headers.get('allow')}\r\n`);
    expectRaw(await raw(fixture.port, 'GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), 404, 'not_found');
  });
  it.each([
    ['what is not HTTP', 'garbage\r\n\r\n', 'invalid_request'],
    ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n', 'method_not_allowed'],
    ['a broken body', head('Transfer-Encoding: chunked\r\n') + 'zz\r\n', 'invalid_request'],
  ])('%s after valid requests is rejected after their replies', async (_, broken, code) => {
    const good = `GET /api/memory/types/unknown HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`;
    const replies = (await raw(fixture.port, good + broken))
      .split(/(?=HTTP\/1\.1 )/)
      .map((reply) => parseRaw(reply).json);
    expect(replies.map(({ status, code: errorCode }) => status ?? errorCode)).toEqual(['outcome_unknown', 'ok', code]);
  });
});
