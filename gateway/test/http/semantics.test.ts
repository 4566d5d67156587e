import { get } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { ServiceError } from 'platform/core/errors.ts';
import { MemoryObject, MemoryType } from 'proto/memory/v1/memory.ts';
import { startGatewayFixture, TOKEN, type GatewayFixture } from '../fixture.ts';

let content = '{}';
let fixture: GatewayFixture;
let isDown = false;
beforeAll(async () => {
  fixture = await startGatewayFixture({
    auth: {
      async getJwks() {
        if (isDown) throw new ServiceError('UNAVAILABLE');
        return { keys: [], cacheControl: 'public, max-age=60', etag: '"v1"' };
      },
    },
    memory: {
      listMemoryObjects: async () => ({ items: [MemoryObject.fromPartial({ content })], total: 1 }),
    },
  });
});
afterAll(() => fixture.stop());

describe('HTTP', () => {
  it('HEAD is GET without the body', async () => {
    const full = await fixture.request('/api/memory/objects');
    const head = await fixture.request('/api/memory/objects', { method: 'HEAD' });
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([
      200,
      '',
      String(Buffer.byteLength(full.text)),
    ]);
  });
  it('a large reply is compressed by the coding that the client prefers, brotli when it likes both', async () => {
    content = JSON.stringify('x'.repeat(2000));
    const fetchRaw = (encoding: string) =>
      new Promise<{ encoding: string | undefined; body: Buffer }>((resolve) => {
        get(
          `${fixture.url}/api/memory/objects`,
          { headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': encoding } },
          async (res) =>
            resolve({ encoding: res.headers['content-encoding'], body: Buffer.concat(await res.toArray()) }),
        );
      });
    const plain = await fetchRaw('br;q=0, gzip;q=0');
    expect(plain.encoding).toBeUndefined();
    for (const accepted of ['gzip', 'br;q=0.4, gzip;q=0.5', 'deflate, GZIP', 'br;q=0, *']) {
      const { encoding, body } = await fetchRaw(accepted);
      expect([accepted, encoding, gunzipSync(body).equals(plain.body)]).toEqual([accepted, 'gzip', true]);
    }
    for (const accepted of ['br', 'gzip, deflate, br, zstd', '*']) {
      const { encoding, body } = await fetchRaw(accepted);
      expect([accepted, encoding, brotliDecompressSync(body).equals(plain.body)]).toEqual([accepted, 'br', true]);
    }
    for (const accepted of ['', 'identity', 'zstd', '*;q=0', 'gzip;q=0', 'identity, gzip;q=0.5'])
      expect([accepted, (await fetchRaw(accepted)).encoding]).toEqual([accepted, undefined]);
    content = '{}';
    expect((await fetchRaw('gzip')).encoding).toBeUndefined();
  });
  it('an invalid request id is replaced, and so is one that holds a server token', async () => {
    for (const id of ['a b', 'x'.repeat(65), '<script>', `aks_${'a'.repeat(49)}`, `trace.aks_${'Z'.repeat(49)}`])
      expect(
        (await fixture.request('/healthz', { headers: { 'x-request-id': id } })).headers.get('x-request-id'),
      ).toMatch(/^[0-9a-f-]{36}$/);
  });
  it('304 without a body for a client that has this version of the reply, by a weak comparison', async () => {
    const ask = (headers: Record<string, string>, method = 'GET') =>
      fixture.request('/.well-known/jwks.json', { method, headers });
    for (const tag of ['"v1"', 'W/"v1"', '"v0", "v1"', '*']) {
      const { status, text, headers } = await ask({ 'if-none-match': tag });
      expect([tag, status, text, headers.get('etag'), headers.get('content-length')]).toEqual([
        tag,
        304,
        '',
        '"v1"',
        null,
      ]);
    }
    expect((await ask({ 'if-none-match': '"v1"' }, 'HEAD')).status).toBe(304);
    for (const tag of ['"v2"', 'v1', '""']) expect((await ask({ 'if-none-match': tag })).status).toBe(200);
    // without an ETag every reply is new
    expect((await fixture.request('/api/memory/objects', { headers: { 'if-none-match': '*' } })).status).toBe(200);
  });
  it('a public reply that failed is asked for again by the next client', async () => {
    const status = async () => (await fixture.request('/.well-known/jwks.json', { token: '' })).status;
    isDown = true;
    expect(await status()).toBe(503);
    isDown = false;
    expect(await status()).toBe(200);
  });
  it('X-Forwarded-* is used only behind a trusted proxy, and never with PUBLIC_URL', async () => {
    const stubs = {
      memory: {
        createMemoryType: async () => ({
          memoryType: MemoryType.fromPartial({ jsonSchema: '{}' }),
          outcome: 'CREATED' as const,
          location: '/x',
        }),
      },
    };
    for (const [env, expected] of [
      [{}, undefined],
      [{ PUBLIC_URL: 'https://public.example' }, 'https://public.example/x'],
    ] as const) {
      const other = await startGatewayFixture(stubs, env);
      const reply = await other.request('/api/memory/types', {
        method: 'POST',
        body: { type: 't', jsonSchema: {} },
        headers: { 'x-forwarded-host': 'evil.example' },
      });
      await other.stop();
      expect(reply.headers.get('location')).toBe(expected ?? `${other.url}/x`);
    }
  });
  it('CORS allows only the origins of the settings; OPTIONS lists the allowed verbs', async () => {
    const preflight = { origin: 'https://console.example', 'access-control-request-method': 'PUT' };
    const none = await fixture.request('/api/memory/types/x', { method: 'OPTIONS', headers: preflight });
    expect([none.status, none.headers.get('access-control-allow-origin'), none.headers.get('allow')]).toEqual([
      204,
      null,
      'GET, PUT, DELETE, HEAD, OPTIONS',
    ]);
    const open = await startGatewayFixture({}, { CORS_ORIGINS: 'https://other.example,https://console.example' });
    const some = await open.request('/api/memory/types/x', { method: 'OPTIONS', token: '', headers: preflight });
    const refused = await open.request('/api/memory/types', {
      token: '',
      headers: { origin: 'https://console.example' },
    });
    await open.stop();
    expect(some.headers.get('access-control-allow-origin')).toBe('https://console.example');
    expect(some.headers.get('access-control-allow-methods')).toContain('PUT');
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([
      401,
      'https://console.example',
    ]);
  });
});
