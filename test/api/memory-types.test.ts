import { newId } from 'platform/core/ids.ts';
import { anyId, anyTime, expectError } from '../support/expect-error.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const jsonSchema = { type: 'object', properties: { price: { type: 'number' } } };
const FIELDS = [
  'change',
  'createdAt',
  'description',
  'displayName',
  'embeddingSchema',
  'groupNames',
  'id',
  'idSchema',
  'jsonSchema',
  'relations',
  'state',
  'type',
  'updatedAt',
  'version',
  'visibility',
];
const nested = (levels: number): object => (levels === 1 ? {} : { not: nested(levels - 1) });
/** A jsonSchema whose JSON text has exactly this number of bytes. */
const sized = (bytes: number): object => ({ description: 'x'.repeat(bytes - '{"description":""}'.length) });

let stack: RunningStack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
});

let names = 0;
const unusedName = () => `Type${++names}`;
const create = (body: unknown, query = '') => tenant.request('POST', `/api/memory/types${query}`, body);

describe('POST /api/memory/types', () => {
  describe('201', () => {
    it('creates a type from a name and a schema, with defaults for the rest', async () => {
      const type = unusedName();
      const { status, body } = await create({ type, jsonSchema });
      expect([status, body]).toEqual([
        201,
        {
          id: anyId,
          change: null,
          type,
          displayName: type,
          description: '',
          visibility: 'organization',
          version: 1,
          jsonSchema,
          idSchema: null,
          embeddingSchema: null,
          groupNames: [],
          relations: [],
          state: 'active',
          createdAt: anyTime,
          updatedAt: body.createdAt,
        },
      ]);
      expect(Object.keys(body).sort()).toEqual(FIELDS);
    });

    it('keeps the limits of a schema as they came, whatever a double can hold', async () => {
      const schema =
        '{"type":"object","properties":{"n":{"minimum":-9223372036854775808,"maximum":18446744073709551615}}}';
      const { status, text, body } = await create(`{"type":"${unusedName()}","jsonSchema":${schema}}`);
      expect([status, text]).toEqual([201, expect.stringContaining(`"jsonSchema":${schema}`)]);
      const read = await tenant.request('GET', `/api/memory/types/${body.id}`);
      expect(read.text).toContain(schema);
      const put = await tenant.request('PUT', `/api/memory/types/${body.id}`, `{"jsonSchema":${schema}}`);
      expect([put.status, put.body.version]).toEqual([200, 1]);
      const object = (n: string) =>
        tenant.request('POST', '/api/memory/objects', `{"typeId":"${body.id}","key":"k${n}","content":{"n":${n}}}`);
      expect((await object('9007199254740991')).status).toBe(201);
      expectError(await object('9007199254740993'), 400, 'invalid_request');
    });

    it('accepts every field of the contract', async () => {
      const given = {
        type: unusedName(),
        displayName: 'Cenník č. 1',
        description: 'What things cost',
        visibility: 'private',
        jsonSchema,
        idSchema: null,
        embeddingSchema: null,
        groupNames: [],
        relations: [],
      };
      expect((await create(given)).body).toMatchObject(given);
    });

    it('names in Location where the same type can be read', async () => {
      const { headers, body } = await create({ type: unusedName(), jsonSchema });
      const locations = stack.baseUrls.map((baseUrl) => `${baseUrl}/api/memory/types/${body.id}`);
      expect(locations).toContain(headers.get('location'));
      expect((await tenant.request('GET', `/api/memory/types/${body.id}`)).body).toEqual(body);
    });

    it('ignores fields that only the service sets', async () => {
      const { status, body } = await create({
        type: unusedName(),
        jsonSchema,
        version: 7,
        state: 'deleting',
        createdAt: '2000-01-01T00:00:00.000Z',
        updatedAt: 'never',
      });
      expect([status, body.version, body.state, body.createdAt > '2020']).toEqual([201, 1, 'active', true]);
    });

    it('keeps the JSON text of the schema', async () => {
      const schema = {
        $schema: 'http://json-schema.org/draft-07/schema#',
        title: '',
        properties: { z: {}, a: { default: null, examples: [1.5, 'é'] } },
        'x-note': { b: [], a: {} },
      };
      expect(JSON.stringify((await create({ type: unusedName(), jsonSchema: schema })).body.jsonSchema)).toBe(
        JSON.stringify(schema),
      );
    });

    it.each<[string, object]>([
      ['a schema of 64 KiB', { jsonSchema: sized(65_536) }],
      ['a schema of 32 levels', { jsonSchema: nested(32) }],
      ['an empty schema', { jsonSchema: {} }],
      ['a displayName of 100 characters', { jsonSchema, displayName: '🐎'.repeat(100) }],
    ])('accepts %s', async (_what, given) => expect((await create({ type: unusedName(), ...given })).status).toBe(201));

    it.each([
      ['one letter', 'a'],
      ['64 characters', `a${'b'.repeat(63)}`],
      ['dots, dashes and underscores', 'A.b-c_9'],
    ])('accepts a name of %s', async (_what, type) => {
      expect((await create({ type, jsonSchema })).body.type).toBe(type);
    });
  });

  describe('400', () => {
    it.each<[string, object, string]>([
      ['a body without type', { jsonSchema }, '/type'],
      ['a body without jsonSchema', { type: 'T' }, '/jsonSchema'],
      ...['', '1st', 'a b', 'é', 'a/b', '_a', `a${'b'.repeat(64)}`].map((type): [string, object, string] => [
        `the name "${type}"`,
        { type, jsonSchema },
        '/type',
      ]),
      ['a name that is no string', { type: 1, jsonSchema }, '/type'],
      ['an empty displayName', { type: 'T', jsonSchema, displayName: '' }, '/displayName'],
      ['a displayName of 101 characters', { type: 'T', jsonSchema, displayName: 'x'.repeat(101) }, '/displayName'],
      ['a displayName with a line feed', { type: 'T', jsonSchema, displayName: 'a\nb' }, '/displayName'],
      ['a displayName of null', { type: 'T', jsonSchema, displayName: null }, '/displayName'],
      ['a description that is no string', { type: 'T', jsonSchema, description: 1 }, '/description'],
      ['an unknown visibility', { type: 'T', jsonSchema, visibility: 'everyone' }, '/visibility'],
      ['an id', { type: 'T', jsonSchema, id: newId() }, '/id'],
      ['an unknown member', { type: 'T', jsonSchema, colour: 'red' }, '/colour'],
      ['groupNames that are no array', { type: 'T', jsonSchema, groupNames: null }, '/groupNames'],
      ['relations that are no array', { type: 'T', jsonSchema, relations: {} }, '/relations'],
      ['a jsonSchema of null', { type: 'T', jsonSchema: null }, '/jsonSchema'],
      ['a jsonSchema that is a string', { type: 'T', jsonSchema: '{}' }, '/jsonSchema'],
      ['a jsonSchema of true', { type: 'T', jsonSchema: true }, '/jsonSchema'],
      ['a jsonSchema over 64 KiB', { type: 'T', jsonSchema: sized(65_537) }, '/jsonSchema'],
    ])('rejects %s', async (_what, body, at) => expectError(await create(body), 400, 'invalid_request', { at }));

    it.each<[string, object, string]>([
      ['of an unknown type', { type: 'strnig' }, '/jsonSchema/type'],
      ['of more than 32 levels', nested(33), '/jsonSchema'],
      ['that refers to another document', { $ref: 'https://example.com/s.json' }, '/jsonSchema/$ref'],
      ['that refers to nothing', { $ref: '#/$defs/none' }, '/jsonSchema/$ref'],
      ['that refers to itself', { $ref: '#' }, '/jsonSchema'],
      ['with a pattern that needs backtracking', { pattern: '(a)\\1' }, '/jsonSchema/pattern'],
      ['of an old draft', { $schema: 'http://json-schema.org/draft-03/schema#' }, '/jsonSchema/$schema'],
      ['that is an example', { name: 'Ada', age: 36 }, '/jsonSchema'],
      ['with an empty enum', { properties: { a: { enum: [] } } }, '/jsonSchema/properties/a/enum'],
    ])('rejects a schema %s', async (_what, schema, at) =>
      expectError(await create({ type: 'T', jsonSchema: schema }), 400, 'invalid_schema', { at }),
    );

    it.each(['upsert', 'force', 'dryRun', 'page'])('rejects the query parameter %s', async (name) => {
      expectError(await create({ type: 'T', jsonSchema }, `?${name}=true`), 400, 'invalid_request', {
        at: `/${name}`,
      });
    });

    it('names a missing field also when other fields are wrong', async () => {
      expectError(await create({ colour: 1, displayName: 2 }), 400, 'invalid_request', { at: '/jsonSchema' });
    });

    it('leaves no type behind', async () => {
      expect(
        (await tenant.request('GET', '/api/memory/types')).body.items.filter(
          ({ type }: { type: string }) => type === 'T',
        ),
      ).toEqual([]);
    });
  });

  describe('403', () => {
    it('refuses more types than the tier allows, naming the limit, until one is deleted', async () => {
      const starter = await stack.tenant({ tier: 'starter' });
      const replies = await Promise.all(
        Array.from({ length: 24 }, (_, i) =>
          starter.request('POST', '/api/memory/types', { type: `T${i}`, jsonSchema }),
        ),
      );
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(20);
      for (const reply of replies.filter(({ status }) => status !== 201))
        expectError(reply, 403, 'tier_limit', { limit: 'memory_types' });
      await starter.request('DELETE', `/api/memory/types/${replies.find(({ status }) => status === 201)!.body.id}`);
      expect((await starter.request('POST', '/api/memory/types', { type: 'Again', jsonSchema })).status).toBe(201);
    });
  });

  describe('409', () => {
    it.each([
      ['same', (name: string) => name],
      ['same but for its case', (name: string) => name.toUpperCase()],
    ])('names the type that has the %s name', async (_what, spelled) => {
      const {
        body: { id, type },
      } = await create({ type: unusedName(), jsonSchema });
      expectError(await create({ type: spelled(type), jsonSchema }), 409, 'already_exists', { id });
    });

    it('of several concurrent requests with one name exactly one creates a type', async () => {
      const type = unusedName();
      const statuses = (await Promise.all(Array.from({ length: 8 }, () => create({ type, jsonSchema })))).map(
        ({ status }) => status,
      );
      expect(statuses.toSorted()).toEqual([201, ...Array<number>(7).fill(409)]);
    });
  });
});

describe('GET /api/memory/types', () => {
  let reader: Tenant;
  const list = (query = '') => reader.request('GET', `/api/memory/types${query}`);
  const namesOf = ({ body }: { body: { items: { type: string }[] } }) => body.items.map(({ type }) => type);
  beforeAll(async () => {
    reader = await stack.tenant();
    for (let i = 1; i <= 25; i++) await reader.request('POST', '/api/memory/types', { type: `T${i}`, jsonSchema });
  });

  describe('200', () => {
    it('lists all whole types when there are no parameters, newest first', async () => {
      const reply = await list();
      expect([reply.status, Object.keys(reply.body), namesOf(reply)]).toEqual([
        200,
        ['items'],
        Array.from({ length: 25 }, (_, i) => `T${25 - i}`),
      ]);
      expect(reply.body.items.every((item: object) => Object.keys(item).sort().join() === FIELDS.join())).toBe(true);
    });

    it.each([
      ['?pageSize=10', 10, 'T25'],
      ['?page=3&pageSize=10', 5, 'T5'],
      ['?page=2', 5, 'T5'],
      ['?pageSize=100', 25, 'T25'],
      ['?page=4&pageSize=10', 0, undefined],
      ['?page=1000&pageSize=100', 0, undefined],
    ])('returns the page %s', async (query, count, first) => {
      const reply = await list(query);
      expect([reply.status, reply.body.items.length, namesOf(reply)[0]]).toEqual([200, count, first]);
    });
  });

  describe('400', () => {
    it.each([
      ...['0', '-1', '1.5', 'x', '', '01', '+1', '1e1', '99999999999'].flatMap((value) => [
        [`?page=${value}`, '/page'],
        [`?pageSize=${value}`, '/pageSize'],
      ]),
      ['?pageSize=101', '/pageSize'],
      ['?page=1&page=2', '/page'],
      ['?type=T1', '/type'],
      ['?cursor=abc', '/cursor'],
    ])('rejects %s', async (query, at) => expectError(await list(query), 400, 'invalid_request', { at }));
  });
});

describe('GET /api/memory/types/{id}', () => {
  it('200: shows the whole type, for an id in lower or upper case', async () => {
    const { body } = await create({ type: unusedName(), jsonSchema });
    const replies = [
      await tenant.request('GET', `/api/memory/types/${body.id}`),
      await tenant.request('GET', `/api/memory/types/${body.id.toUpperCase()}`),
    ];
    expect(replies.map((reply) => [reply.status, reply.body])).toEqual([
      [200, body],
      [200, body],
    ]);
  });

  it('400: rejects a query parameter', async () => {
    expectError(await tenant.request('GET', `/api/memory/types/${newId()}?include=objects`), 400, 'invalid_request', {
      at: '/include',
    });
  });

  it.each([
    ['an unknown id', newId()],
    ['a malformed id', 'Type1'],
    ['the name of an object property in JavaScript', '__proto__'],
  ])('404: answers %s', async (_what, id) => {
    expectError(await tenant.request('GET', `/api/memory/types/${id}`), 404, 'not_found');
  });
});
