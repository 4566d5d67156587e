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
import { fieldOptions, restMethods } from '../../src/contract/rest-methods.ts';
import { startGatewayFixture, type GatewayFixture } from '../fixture.ts';

const TYPE: MemoryType = {
  id: 'i',
  type: 't',
  displayName: '',
  description: '"ü\n😀',
  visibility: '',
  version: 0,
  jsonSchema: '{"b":1,"a":[]}',
  idSchema: undefined,
  embeddingSchema: { fields: ['/text'], model: 'm', dimensions: undefined, metric: undefined },
  groupNames: [],
  relations: [],
  state: 'active',
  change: undefined,
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
  creditsCharged: '1',
};
/** False for a value with an integer that the gateway rejects because a double cannot represent it exactly. */
const hasExactIntegers = (value: unknown): boolean =>
  typeof value === 'number'
    ? !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21
    : typeof value !== 'object' || value === null || Object.values(value).every(hasExactIntegers);
let got: unknown;
let fixture: GatewayFixture;
beforeAll(async () => {
  fixture = await startGatewayFixture(
    {
      memory: {
        createMemoryType: async (request) => ({
          memoryType: ((got = request), TYPE),
          outcome: 'CREATED',
          location: '/api/memory/types/i',
        }),
        updateMemoryType: async (request) => ({
          memoryType: ((got = request), TYPE),
          outcome: 'DONE',
          report: request.dryRun
            ? { compatible: true, version: 2, checked: 3, count: 0, examples: [], tookMs: 4 }
            : undefined,
        }),
        listMemoryTypes: async (request) => ({ items: ((got = request), []) }),
        createMemoryObject: async (request) => ({
          memoryObject: { ...OBJECT, content: ((got = request), request.content ?? '') },
          outcome: 'REPLACED',
          location: '',
        }),
        listMemoryObjects: async (request) => ({
          total: ((got = request), 2 ** 40),
          items: [OBJECT, OBJECT],
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
afterAll(() => fixture.stop());
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fixture.request(path, { method: 'POST', body, headers });
const expectRejected = async (
  reply: Promise<{ status: number; json: Record<string, unknown> }>,
  ...paths: string[]
) => {
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
      idSchema: undefined,
      embeddingSchema: undefined,
      groupNames: ['g', ''],
      relations: [],
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
  it('whose update mask has the given members, without path parameters and ignored members', async () => {
    await fixture.request('/api/memory/types/a%2Fb', {
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
    await fixture.request('/api/memory/types/x', { method: 'PUT', body: { version: 3 } });
    expect((got as UpdateMemoryTypeRequest).updateMask).toEqual([]);
  });
  it('with any JSON value unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .jsonValue({ maxDepth: 4, stringUnit: 'grapheme-composite' })
          .filter((value) => !/__proto__|\\u0000/.test(JSON.stringify(value)) && hasExactIntegers(value)),
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
    ['null for a field that is not nullable', { content: 1, key: null }, ['/key']],
    ['a missing member', { key: 'k' }, ['/content']],
    ['a name of Object.prototype', { content: 1, constructor: 1, toString: 2 }, ['/constructor', '/toString']],
  ])('rejected naming %s', async (_, body, paths) => {
    await expectRejected(post('/api/memory/objects', body), ...paths);
  });
  it.each(
    restMethods().flatMap(({ requestType, bindings }) =>
      requestType.fieldsArray
        .filter((field) => field.type === 'string' && fieldOptions(field).required && !fieldOptions(field).json)
        .map(({ name }) => ({ name, ...bindings[0]! })),
    ),
  )('rejected naming the empty $name of $verb $template', async ({ name, verb, template }) => {
    const { status, json } = await fixture.request(template.replace(/\{\w+\}/, 'x'), {
      method: verb,
      body: { [name]: '' },
    });
    expect(status).toBe(400);
    expect(json.details).toContainEqual({ path: `/${name}`, message: `${name} must not be empty` });
  });
  it('rejected naming no more than 20 of 50,000 unknown members', async () => {
    const body = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`m${i}`, 0]));
    await expectRejected(
      post('/api/memory/objects', body),
      ...Object.keys(body)
        .slice(0, 20)
        .map((name) => `/${name}`),
    );
  });
  it('rejected naming a list of more than 1,000 elements', async () => {
    const groupNames = Array.from({ length: 1_001 }, () => 'g');
    await expectRejected(post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames }), '/groupNames');
    await post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames: groupNames.slice(1) });
    expect((got as CreateMemoryTypeRequest).groupNames).toHaveLength(1_000);
  });
  it('rejected naming the element of a list', async () => {
    await expectRejected(
      post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames: ['a', 1, null] }),
      '/groupNames/1',
      '/groupNames/2',
    );
    await expectRejected(post('/api/memory/types', { type: 't', jsonSchema: {}, groupNames: 'a' }), '/groupNames');
  });
  it('rejected naming fields that only the platform sets', async () => {
    await expectRejected(
      fixture.request('/api/memory/types/x', { method: 'PUT', body: { pathId: 'y', updateMask: [], ifMatch: '*' } }),
      '/pathId',
      '/updateMask',
      '/ifMatch',
    );
    await expectRejected(post('/api/agent/run', { agentName: 'a', args: 1, idempotencyKey: 'k' }), '/idempotencyKey');
  });
  it('rejected naming a query parameter beside a body', async () => {
    await expectRejected(
      fixture.request('/api/memory/objects?force=true', { method: 'POST', body: { content: 1 } }),
      '/force',
    );
  });
  it('rejected with a sentence that names the member', async () => {
    expect((await post('/api/memory/objects', {})).json.error).toBe('content is required');
  });
});

describe('a query becomes the request message', () => {
  it('parsed strictly', async () => {
    await fixture.request('/api/memory/objects?type=a%20b+c&key=&page=2&&pageSize=100');
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
  ])('rejected naming page in ?%s', async (query) => {
    await expectRejected(fixture.request(`/api/memory/objects?${query}`), '/page');
  });
  it('rejected because an integer is too large or too small, which is told', async () => {
    for (const [page, fault] of [
      ['2147483648', 'too large'],
      ['9007199254740993', 'too large'],
      ['-2147483649', 'too small'],
    ])
      expect((await fixture.request(`/api/memory/objects?page=${page}`)).json.error).toBe(`page is ${fault}`);
  });
  it('rejected naming unknown parameters, fields of the path among them', async () => {
    await expectRejected(fixture.request('/api/memory/objects?nope=1&type_id=x'), '/nope', '/type_id');
    await expectRejected(fixture.request('/api/memory/objects/x?id=y'), '/id');
  });
  it('rejected with broken encoding', async () => {
    for (const query of ['type=%ZZ', 'type=%C3', 'type=%00'])
      expect((await fixture.request(`/api/memory/objects?${query}`)).status).toBe(400);
  });
});

describe('a header becomes a field of the request', () => {
  it('if the method declares it', async () => {
    await post('/api/agent/run', { agentName: 'a', args: null }, { 'idempotency-key': 'k 1' });
    expect((got as RunAgentRequest).idempotencyKey).toBe('k 1');
  });
  it('rejected where it has no meaning, if its client relies on it', async () => {
    await expectRejected(
      fixture.request('/api/memory/objects', { headers: { 'if-match': '"x"', 'idempotency-key': 'k' } }),
      '/Idempotency-Key',
      '/If-Match',
    );
    await expectRejected(
      post('/api/memory/types', { type: 't', jsonSchema: true }, { 'idempotency-key': 'k', 'if-none-match': '*' }),
      '/Idempotency-Key',
      '/If-None-Match',
    );
  });
  it.each([
    ['256 characters', 'x'.repeat(256)],
    ['a character that is not printable ASCII', 'ä'],
  ])('rejected with %s', async (_, value) => {
    await expectRejected(
      post('/api/agent/run', { agentName: 'a', args: 1 }, { 'idempotency-key': value }),
      '/Idempotency-Key',
    );
  });
});

describe('the response message becomes the reply', () => {
  it('with status by outcome, Location with the public URL, absent fields as null, free JSON as stored', async () => {
    const reply = await post('/api/memory/types', { type: 't', jsonSchema: true });
    expect(reply.status).toBe(201);
    expect(reply.headers.get('location')).toBe(`${fixture.url}/api/memory/types/i`);
    expect(reply.text).toBe(
      '{"id":"i","type":"t","displayName":"","description":"\\"ü\\n😀","visibility":"","version":0,"jsonSchema":{"b":1,"a":[]},"idSchema":null,"embeddingSchema":{"fields":["/text"],"model":"m"},"groupNames":[],"relations":[],"state":"active","createdAt":"","updatedAt":"","change":null}',
    );
  });
  it('with the status of another outcome, and without empty headers', async () => {
    const reply = await post('/api/memory/objects', { content: {} });
    expect([reply.status, reply.headers.get('location')]).toEqual([200, null]);
  });
  it('with lists of messages, and 64-bit totals as numbers', async () => {
    expect((await fixture.request('/api/memory/objects')).json).toEqual({
      total: 2 ** 40,
      items: [
        { ...OBJECT, content: {} },
        { ...OBJECT, content: {} },
      ],
    });
    expect((await fixture.request('/api/memory/types')).text).toBe('{"items":[]}');
  });
  it('with nested lists, and without an absent header', async () => {
    const reply = await post('/api/agent/run', { agentName: 'a', args: {} });
    expect(reply.text).toBe(
      '{"success":true,"sessionId":"api-1","agentExecutionId":"e","agent":"a","output":[1, null],"messages":[{"role":"r","parts":[{"type":"text","text":"x"},{"type":"text","text":""}]}]}',
    );
    expect(reply.headers.get('idempotency-replayed')).toBeNull();
  });
  it('with a header that is present', async () => {
    expect(
      (await post('/api/agent/run', { agentName: 'a', args: {} }, { 'idempotency-key': 'k' })).headers.get(
        'idempotency-replayed',
      ),
    ).toBe('true');
  });
  it('without absent members that are declared as left out', async () => {
    expect((await fixture.request('/api/agent/run')).text).toBe(
      '{"agents":[{"name":"a"},{"name":"b","description":"d","argumentsSchema":{},"version":3}]}',
    );
  });
  it('with a cursor as a Link to the next page', async () => {
    const reply = await fixture.request('/api/agent/executions?agent=x+y&pageSize=2', {
      headers: { 'x-forwarded-proto': 'evil, https', 'x-forwarded-host': 'evil.example, api.example.com' },
    });
    const [, next] = /^<(.*)>; rel="next"$/.exec(reply.headers.get('link') as string) as unknown as [string, string];
    expect(next).toBe('https://api.example.com/api/agent/executions?agent=x+y&pageSize=2&cursor=a%2Fb%3D');
    expect(reply.text).toBe('{"items":[]}');
    const last = await fixture.request(next.slice('https://api.example.com'.length));
    expect((got as ListAgentExecutionsRequest).cursor).toBe('a/b=');
    expect(last.headers.get('link')).toBeNull();
  });
});
