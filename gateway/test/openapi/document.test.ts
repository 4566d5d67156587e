import { Validator } from '@seriousme/openapi-schema-validator';
import { ERRORS } from 'platform/core/errors.ts';
import { codeOf, type KnownReason } from 'platform/core/errors.ts';
import { restMethods } from '../../src/contract/rest-methods.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { startGatewayFixture, type GatewayFixture } from '../fixture.ts';

let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture({}, { PUBLIC_URL: 'https://api.example' });
});
afterAll(() => fixture.stop());
const get = (path: string, headers = {}) => fixture.request(path, { token: '', headers });

describe('/openapi.json', () => {
  it('is a valid OpenAPI 3.1 document, whose server is PUBLIC_URL', async () => {
    const { status, json } = await get('/openapi.json');
    expect([status, json.openapi, json.servers]).toEqual([200, '3.1.0', [{ url: 'https://api.example' }]]);
    expect(await new Validator().validate(json)).toEqual({ valid: true });
  });

  it('says that PUT of a memory type keeps what is absent, and that PATCH of an object replaces its content', () => {
    const { paths } = openApiDocument(restMethods(), '');
    const said = (path: string, verb: 'put' | 'patch') => JSON.stringify(paths[path]?.[verb]);
    expect(said('/api/memory/types/{id}', 'put')).toContain('A member that is absent keeps its value.');
    expect(said('/api/memory/objects/{id}', 'patch')).toContain('Replaces the whole content of a memory object');
  });

  it('has every route, each with a summary, its parameters and its body', () => {
    const { paths } = openApiDocument(restMethods(), '');
    const documented = Object.entries(paths).flatMap(([path, verbs]) =>
      Object.entries(verbs).map(([verb, { summary }]) => [`${verb.toUpperCase()} ${path}`, summary.length > 10]),
    );
    expect(documented.sort()).toEqual(
      restMethods()
        .flatMap(({ bindings }) => bindings.map(({ verb, template }) => `${verb} ${template.replace('{path_', '{')}`))
        .sort()
        .map((name) => [name, true]),
    );
    expect(paths['/api/auth/whoami']?.get?.parameters).toEqual([]);
    const { parameters, requestBody, responses } = paths['/api/agent/run']?.post ?? {};
    expect(parameters?.map(({ name, in: place }) => [name, place])).toEqual([['Idempotency-Key', 'header']]);
    expect(requestBody).toMatchObject({
      content: { 'application/json': { schema: { required: ['agentName', 'args'] } } },
    });
    expect(Object.keys(responses ?? {})).toEqual([
      '200',
      '400',
      '401',
      '402',
      '403',
      '404',
      '408',
      '409',
      '413',
      '415',
      '422',
      '429',
      '500',
      '503',
      '504',
    ]);
    const members = Object.keys(
      (requestBody?.content as { 'application/json': { schema: { properties: object } } })['application/json'].schema
        .properties,
    );
    expect(members).toEqual(['agentName', 'args']);
    expect(responses?.['200']?.headers).toMatchObject({ 'Idempotency-Replayed': {}, 'Credits-Charged': {} });
  });

  it('is compressed as the client asks, the same each time', async () => {
    const texts = new Set<string>();
    for (const coding of ['br', 'gzip', 'br', 'gzip', 'identity']) {
      const { text, headers } = await get('/openapi.json', { 'accept-encoding': coding });
      expect(headers.get('content-encoding')).toBe(coding === 'identity' ? null : coding);
      texts.add(text);
    }
    expect(texts.size).toBe(1);
  });

  it('is cached by its ETag, and so are the page and the root', async () => {
    for (const path of ['/openapi.json', '/reference', '/']) {
      const first = await get(path);
      const again = await get(path, { 'if-none-match': first.headers.get('etag') });
      expect([path, first.status, again.status, again.text]).toEqual([path, 200, 304, '']);
    }
  });
});

describe('/reference', () => {
  it('explains every code, and everything that a link points to is on the page', async () => {
    const { text } = await get('/reference');
    for (const reason of Object.keys(ERRORS)) expect(text).toContain(`id="code-${codeOf(reason as KnownReason)}"`);
    const ids = new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => id));
    for (const [, id] of text.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(id);
  });

  it('links the schema of every reply that has one', async () => {
    const { text } = await get('/reference');
    expect(text).not.toMatch(/<td>(Done|Created)\.<\/td>/);
    expect(text).toContain('<a href="#schema-Actor">Actor</a> or null');
  });

  it('needs no script and no other address, and its policy allows none', async () => {
    const { headers, text } = await get('/reference');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/);
    expect(text).not.toMatch(/<script|https?:\/\/|style="|\son\w+="/);
  });

  it('is pointed to by the root and by a path that does not exist', async () => {
    expect((await get('/')).json).toEqual({
      name: 'Agent and memory service',
      reference: '/reference',
      openapi: '/openapi.json',
    });
    const { status, json } = await get('/nowhere');
    expect([status, json.reference]).toEqual([404, '/reference']);
  });
});
