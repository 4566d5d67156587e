import { gunzipSync } from 'node:zlib';
import { get } from 'node:http';
import fc from 'fast-check';
import type {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  ListMemoryObjectsRequest,
  MemoryObject,
  MemoryType,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import type { ListAgentExecutionsRequest, RunAgentRequest, RunAgentResponse } from 'proto/agents/v1/agents.ts';
import { startTestbed, TOKEN, type Testbed } from '../testbed.ts';

const TYPE: MemoryType = {
  id: 'i',
  type: 't',
  displayName: '',
  description: '"ü\n😀',
  visibility: '',
  version: 0,
  jsonSchema: '{"b":1,"a":[]}',
  idSchema: undefined,
  embeddingSchema: '{"fields":[]}',
  groupNames: [],
  relations: '[]',
  state: 'active',
  createdAt: '',
  updatedAt: '',
};
const OBJECT: MemoryObject = {
  id: 'i',
  typeId: 'ti',
  type: 't',
  key: 'k',
  content: '{}',
  schemaVersion: 1,
  revision: 2,
  createdAt: 'c',
  updatedAt: 'u',
};
const RUN: RunAgentResponse = {
  success: true,
  sessionId: 'api-1',
  agentExecutionId: 'e',
  agent: 'a',
  output: '[1, null]',
  messages: [
    {
      role: 'r',
      parts: [
        { type: 'text', text: 'x' },
        { type: 'text', text: '' },
      ],
    },
  ],
  idempotencyReplayed: undefined,
};
/** False for a value with an integer that is refused because doubles cannot tell it from its neighbours. */
const keepsItsDigits = (value: unknown): boolean =>
  typeof value === 'number'
    ? !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21
    : typeof value !== 'object' || value === null || Object.values(value).every(keepsItsDigits);
let got: unknown;
let content = '{}';
let bed: Testbed;
beforeAll(async () => {
  bed = await startTestbed(
    {
      memory: {
        createMemoryType: async (request) => ({
          memoryType: ((got = request), TYPE),
          outcome: 'CREATED',
          location: '/api/memory/types/i',
        }),
        updateMemoryType: async (request) => ({ memoryType: ((got = request), TYPE) }),
        listMemoryTypes: async (request) => ({ items: ((got = request), []) }),
        createMemoryObject: async (request) => ({
          memoryObject: { ...OBJECT, content: ((got = request), request.content ?? '') },
          outcome: 'REPLACED',
          location: '',
        }),
        listMemoryObjects: async (request) => ({
          total: ((got = request), 2 ** 40),
          items: [OBJECT, { ...OBJECT, content }],
        }),
        deleteMemoryObject: async (request) => ({ success: ((got = request), true), id: request.id }),
        getMemoryObject: async (request) => ({ memoryObject: ((got = request), { ...OBJECT, id: request.id }) }),
      },
      agents: {
        runAgent: async (request) => ({
          ...RUN,
          idempotencyReplayed: ((got = request), request.idempotencyKey && 'true'),
        }),
        listRunnableAgents: async () => ({
          agents: [
            {
              name: 'a',
              description: undefined,
              argumentsSchema: undefined,
              outputSchema: undefined,
              pricing: undefined,
              version: undefined,
            },
            {
              name: 'b',
              description: 'd',
              argumentsSchema: '{}',
              outputSchema: undefined,
              pricing: undefined,
              version: 3,
            },
          ],
        }),
        listAgentExecutions: async (request) => ({
          items: ((got = request), []),
          nextCursor: request.cursor ? undefined : 'a/b=',
        }),
      },
    },
    { TRUSTED_PROXIES: '1' },
  );
});
afterAll(() => bed.stop());
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  bed.request(path, { method: 'POST', body, headers });
const expectRefused = async (reply: Promise<{ status: number; json: Record<string, unknown> }>, ...paths: string[]) => {
  const { status, json } = await reply;
  expect(status).toBe(400);
  expect((json.details as { path: string }[]).map(({ path }) => path)).toEqual(paths);
};

describe('a body becomes the request message', () => {
  it('with free JSON as its text, lists, and absent apart from empty', async () => {
    await post('/api/memory/types', {
      type: 't',
      jsonSchema: { b: 1, a: [true, null] },
      idSchema: null,
      groupNames: ['g', ''],
      description: '',
    });
    expect(got).toEqual({
      type: 't',
      displayName: undefined,
      description: '',
      visibility: undefined,
      jsonSchema: '{"b":1,"a":[true,null]}',
      idSchema: 'null',
      embeddingSchema: undefined,
      groupNames: ['g', ''],
      relations: undefined,
    } satisfies CreateMemoryTypeRequest);
  });
  it.each([
    ['null', null],
    ['false', false],
    ['a string', 'x'],
    ['a number', 0],
    ['an empty array', []],
  ])('with %s as args', async (_, args) => {
    await post('/api/agent/run', { agentName: 'a', args });
    expect(got).toEqual({
      agentName: 'a',
      args: JSON.stringify(args),
      idempotencyKey: undefined,
    } satisfies RunAgentRequest);
  });
  it('with the members that were given in its mask, path parameters apart, and members of a resource sent back left out', async () => {
    await bed.request('/api/memory/types/a%2Fb', {
      method: 'PUT',
      body: { ...TYPE, jsonSchema: {}, embeddingSchema: null, relations: [], idSchema: undefined, id: 'other' },
    });
    const { pathId, id, updateMask, version } = got as UpdateMemoryTypeRequest & { version?: number };
    expect({ pathId, id, version }).toEqual({ pathId: 'a/b', id: 'other', version: undefined });
    expect(updateMask?.toSorted()).toEqual([
      'description',
      'displayName',
      'embeddingSchema',
      'groupNames',
      'id',
      'jsonSchema',
      'relations',
      'type',
      'visibility',
    ]);
  });
  it('with an empty mask when only ignored members were given', async () => {
    await bed.request('/api/memory/types/x', { method: 'PUT', body: { version: 3 } });
    expect((got as UpdateMemoryTypeRequest).updateMask).toEqual([]);
  });
  it('with any JSON value as it was', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .jsonValue({ maxDepth: 4, stringUnit: 'grapheme-composite' })
          .filter((value) => !/__proto__|\\u0000/.test(JSON.stringify(value)) && keepsItsDigits(value)),
        async (value) => {
          const { status, json } = await post('/api/memory/objects', { content: value });
          expect((got as CreateMemoryObjectRequest).content).toBe(JSON.stringify(value));
          expect(status).toBe(200);
          expect(json.content).toEqual(JSON.parse(JSON.stringify(value)));
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each([
    ['an unknown member', { content: 1, nope: 1, 'a/b': 2 }, ['/nope', '/a~1b']],
    ['the proto spelling of a member', { content: 1, type_id: 'x' }, ['/type_id']],
    ['a wrong type', { content: 1, key: 5, type: {} }, ['/key', '/type']],
    ['null where no null is meant', { content: 1, key: null }, ['/key']],
    ['a missing member', { key: 'k' }, ['/content']],
    ['a name of Object.prototype', { content: 1, constructor: 1, toString: 2 }, ['/constructor', '/toString']],
  ])('refused naming %s', async (_, body, paths) => {
    await expectRefused(post('/api/memory/objects', body), ...paths);
  });
  it('refused naming the element of a list', async () => {
    await expectRefused(
      post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames: ['a', 1, null] }),
      '/groupNames/1',
      '/groupNames/2',
    );
    await expectRefused(post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames: 'a' }), '/groupNames');
  });
  it('refused naming fields that only the platform sets', async () => {
    await expectRefused(
      bed.request('/api/memory/types/x', { method: 'PUT', body: { pathId: 'y', updateMask: [], ifMatch: '*' } }),
      '/pathId',
      '/updateMask',
      '/ifMatch',
    );
    await expectRefused(post('/api/agent/run', { agentName: 'a', args: 1, idempotencyKey: 'k' }), '/idempotencyKey');
  });
  it('refused naming a query parameter beside a body', async () => {
    await expectRefused(
      bed.request('/api/memory/objects?force=true', { method: 'POST', body: { content: 1 } }),
      '/force',
    );
  });
  it('with a sentence that names the member', async () => {
    expect((await post('/api/memory/objects', {})).json.error).toBe('content is required');
  });
});

describe('a query becomes the request message', () => {
  it('read strictly', async () => {
    await bed.request('/api/memory/objects?type=a%20b+c&key=&page=2&&pageSize=100');
    expect(got).toEqual({
      type: 'a b c',
      key: '',
      page: 2,
      pageSize: 100,
      typeId: undefined,
    } satisfies ListMemoryObjectsRequest);
  });
  it.each([
    'page=01',
    'page=1.0',
    'page=',
    'page',
    'page=%201',
    'page=1e1',
    'page=99999999999',
    'page=1&page=1',
    'page=2&page=x',
    'page=+1',
  ])('refused naming page in ?%s', async (query) => {
    await expectRefused(bed.request(`/api/memory/objects?${query}`), '/page');
  });
  it('refused naming what is unknown, the fields of the path among it', async () => {
    await expectRefused(bed.request('/api/memory/objects?nope=1&type_id=x'), '/nope', '/type_id');
    await expectRefused(bed.request('/api/memory/objects/x?id=y'), '/id');
  });
  it('refused where the encoding is broken', async () => {
    for (const query of ['type=%ZZ', 'type=%C3', 'type=%00'])
      expect((await bed.request(`/api/memory/objects?${query}`)).status).toBe(400);
  });
});

describe('a header becomes a field of the request', () => {
  it('where the method has one', async () => {
    await post('/api/agent/run', { agentName: 'a', args: null }, { 'idempotency-key': 'k 1' });
    expect((got as RunAgentRequest).idempotencyKey).toBe('k 1');
  });
  it('and is ignored where not', async () => {
    expect(
      (await bed.request('/api/memory/objects', { headers: { 'if-match': '"x"', 'idempotency-key': 'k' } })).status,
    ).toBe(200);
  });
  it.each([
    ['256 characters', 'x'.repeat(256)],
    ['what is not printable', 'ä'],
  ])('refused with %s', async (_, value) => {
    await expectRefused(
      post('/api/agent/run', { agentName: 'a', args: 1 }, { 'idempotency-key': value }),
      '/Idempotency-Key',
    );
  });
});

describe('the response message becomes the reply', () => {
  it('status by outcome, Location with the public URL, absent as null, free JSON as it is stored', async () => {
    const reply = await post('/api/memory/types', { type: 't', jsonSchema: true });
    expect(reply.status).toBe(201);
    expect(reply.headers.get('location')).toBe(`${bed.url}/api/memory/types/i`);
    expect(reply.text).toBe(
      '{"id":"i","type":"t","displayName":"","description":"\\"ü\\n😀","visibility":"","version":0,"jsonSchema":{"b":1,"a":[]},"idSchema":null,"embeddingSchema":{"fields":[]},"groupNames":[],"relations":[],"state":"active","createdAt":"","updatedAt":""}',
    );
  });
  it('another outcome: its own status, and no header that is empty', async () => {
    const reply = await post('/api/memory/objects', { content: {} });
    expect([reply.status, reply.headers.get('location')]).toEqual([200, null]);
  });
  it('lists of messages, and 64-bit totals as numbers', async () => {
    expect((await bed.request('/api/memory/objects')).json).toEqual({
      total: 2 ** 40,
      items: [
        { ...OBJECT, content: {} },
        { ...OBJECT, content: {} },
      ],
    });
    expect((await bed.request('/api/memory/types')).text).toBe('{"items":[]}');
  });
  it('nested lists, and a header that is absent', async () => {
    const reply = await post('/api/agent/run', { agentName: 'a', args: {} });
    expect(reply.text).toBe(
      '{"success":true,"sessionId":"api-1","agentExecutionId":"e","agent":"a","output":[1, null],"messages":[{"role":"r","parts":[{"type":"text","text":"x"},{"type":"text","text":""}]}]}',
    );
    expect(reply.headers.get('idempotency-replayed')).toBeNull();
  });
  it('a header that is present', async () => {
    expect(
      (await post('/api/agent/run', { agentName: 'a', args: {} }, { 'idempotency-key': 'k' })).headers.get(
        'idempotency-replayed',
      ),
    ).toBe('true');
  });
  it('members that are left out when absent', async () => {
    expect((await bed.request('/api/agent/run')).text).toBe(
      '{"agents":[{"name":"a"},{"name":"b","description":"d","argumentsSchema":{},"version":3}]}',
    );
  });
  it('a cursor as a Link that leads to the next page', async () => {
    const reply = await bed.request('/api/agent/executions?agent=x+y&pageSize=2', {
      headers: { 'x-forwarded-proto': 'evil, https', 'x-forwarded-host': 'evil.example, api.example.com' },
    });
    const [, next] = /^<(.*)>; rel="next"$/.exec(reply.headers.get('link') as string) as unknown as [string, string];
    expect(next).toBe('https://api.example.com/api/agent/executions?agent=x+y&pageSize=2&cursor=a%2Fb%3D');
    expect(reply.text).toBe('{"items":[]}');
    const last = await bed.request(next.slice('https://api.example.com'.length));
    expect((got as ListAgentExecutionsRequest).cursor).toBe('a/b=');
    expect(last.headers.get('link')).toBeNull();
  });
});

describe('manners', () => {
  it('HEAD is GET without the body', async () => {
    const full = await bed.request('/api/memory/objects');
    const head = await bed.request('/api/memory/objects', { method: 'HEAD' });
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([
      200,
      '',
      String(Buffer.byteLength(full.text)),
    ]);
  });
  it('a large reply is compressed for a client that asks for it, and for no other', async () => {
    content = JSON.stringify('x'.repeat(2000));
    const fetchRaw = (encoding: string) =>
      new Promise<{ encoding: string | undefined; body: Buffer }>((resolve) => {
        get(
          `${bed.url}/api/memory/objects`,
          { headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': encoding } },
          async (res) =>
            resolve({ encoding: res.headers['content-encoding'], body: Buffer.concat(await res.toArray()) }),
        );
      });
    const zipped = await fetchRaw('br, gzip;q=0.5');
    expect(zipped.encoding).toBe('gzip');
    const plain = await fetchRaw('br, gzip;q=0');
    expect(plain.encoding).toBeUndefined();
    expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
    content = '{}';
    expect((await fetchRaw('gzip')).encoding).toBeUndefined();
  });
  it('a request id that is not acceptable is replaced', async () => {
    for (const id of ['a b', 'x'.repeat(65), '<script>'])
      expect((await bed.request('/health', { headers: { 'x-request-id': id } })).headers.get('x-request-id')).toMatch(
        /^[0-9a-f-]{36}$/,
      );
  });
  it('X-Forwarded-* count only behind a trusted proxy; PUBLIC_URL wins', async () => {
    const behind = {
      memory: { createMemoryType: async () => ({ memoryType: TYPE, outcome: 'CREATED' as const, location: '/x' }) },
    };
    for (const [env, expected] of [
      [{}, undefined],
      [{ PUBLIC_URL: 'https://public.example' }, 'https://public.example/x'],
    ] as const) {
      const other = await startTestbed(behind, env);
      const reply = await other.request('/api/memory/types', {
        method: 'POST',
        body: { type: 't', jsonSchema: {} },
        headers: { 'x-forwarded-host': 'evil.example' },
      });
      await other.stop();
      expect(reply.headers.get('location')).toBe(expected ?? `${other.url}/x`);
    }
  });
  it('CORS: only origins from the settings, with OPTIONS telling what is allowed', async () => {
    const preflight = { origin: 'https://console.example', 'access-control-request-method': 'PUT' };
    const none = await bed.request('/api/memory/types/x', { method: 'OPTIONS', headers: preflight });
    expect([none.status, none.headers.get('access-control-allow-origin'), none.headers.get('allow')]).toEqual([
      204,
      null,
      'GET, PUT, DELETE, HEAD, OPTIONS',
    ]);
    const open = await startTestbed({}, { CORS_ORIGINS: 'https://other.example,https://console.example' });
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
