import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import { anyId, anyTime, expectError, detailPaths } from '../support/expect-error.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const FIELDS = ['content', 'createdAt', 'id', 'key', 'revision', 'schemaVersion', 'type', 'typeId', 'updatedAt'];
const jsonSchema = {
  type: 'object',
  required: ['price'],
  additionalProperties: false,
  properties: { price: { type: 'number' }, name: { type: 'string' }, tag: { enum: ['secret-tag'] } },
};
/** Content whose JSON text has exactly this number of bytes. */
const sized = (bytes: number): object => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });

let stack: RunningStack;
let tenant: Tenant;
let strict: { id: string; type: string };
let open: { id: string; type: string };
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
  strict = (await tenant.request('POST', '/api/memory/types', { type: 'Product', jsonSchema })).body;
  open = (await tenant.request('POST', '/api/memory/types', { type: 'Anything', jsonSchema: {} })).body;
});

const create = (body: unknown, query = '') => tenant.request('POST', `/api/memory/objects${query}`, body);
const newObject = async (content: object = { price: 1 }) =>
  (await create({ typeId: strict.id, key: newId(), content })).body;
const get = (id: string, query = '') => tenant.request('GET', `/api/memory/objects/${id}${query}`);

describe('POST /api/memory/objects', () => {
  describe('201', () => {
    it('answers with the whole object', async () => {
      const { status, body } = await create({ typeId: strict.id, key: 'a/b c', content: { price: 1.5 } });
      expect([status, body]).toEqual([
        201,
        {
          id: anyId,
          typeId: strict.id,
          type: 'Product',
          key: 'a/b c',
          content: { price: 1.5 },
          schemaVersion: 1,
          revision: 1,
          createdAt: anyTime,
          updatedAt: body.createdAt,
        },
      ]);
      expect(Object.keys(body).sort()).toEqual(FIELDS);
    });

    it('names in Location where the same object can be read', async () => {
      const { headers, body } = await create({ typeId: strict.id, key: newId(), content: { price: 1 } });
      expect(stack.baseUrls.map((baseUrl) => `${baseUrl}/api/memory/objects/${body.id}`)).toContain(
        headers.get('location'),
      );
      const read = await get(body.id);
      expect([read.status, read.body]).toEqual([200, body]);
    });

    it.each([
      ['the name of the type', () => ({ type: 'Product' })],
      ['its name in another case', () => ({ type: 'pRODUCT' })],
      ['name and id', () => ({ type: 'product', typeId: strict.id })],
      ['the id in upper case', () => ({ typeId: strict.id.toUpperCase() })],
    ])('accepts %s', async (_what, named) =>
      expect((await create({ ...named(), key: newId(), content: { price: 1 } })).body).toMatchObject({
        typeId: strict.id,
        type: 'Product',
      }),
    );

    it('ignores fields that only the service sets', async () => {
      const { body } = await create({
        typeId: strict.id,
        key: newId(),
        content: { price: 1 },
        schemaVersion: 9,
        revision: 9,
        createdAt: 'x',
        updatedAt: 'y',
      });
      expect(body).toMatchObject({ schemaVersion: 1, revision: 1, createdAt: anyTime });
    });

    it.each([
      ['512 characters', '🐎'.repeat(512)],
      ['one character', '-'],
      ['spaces', ' a '],
      ['the name of an object property in JavaScript', 'constructor'],
    ])('accepts a key of %s', async (_what, key) => {
      expect((await create({ typeId: open.id, key, content: {} })).body.key).toBe(key);
    });

    it('accepts content of 256 KiB', async () =>
      expect((await create({ typeId: open.id, key: newId(), content: sized(262_144) })).status).toBe(201));

    it('accepts the same key under another type', async () => {
      const key = newId();
      expect([
        (await create({ typeId: strict.id, key, content: { price: 1 } })).status,
        (await create({ typeId: open.id, key, content: {} })).status,
      ]).toEqual([201, 201]);
    });
  });

  describe('400', () => {
    it.each<[string, () => object, string]>([
      ['a body without a type', () => ({ key: 'k', content: {} }), '/typeId'],
      ['a body without key', () => ({ typeId: open.id, content: {} }), '/key'],
      ['a body without content', () => ({ typeId: open.id, key: 'k' }), '/content'],
      ['a malformed typeId', () => ({ typeId: 'Product', key: 'k', content: {} }), '/typeId'],
      ['an id', () => ({ typeId: open.id, key: 'k', content: {}, id: newId() }), '/id'],
      ['an unknown member', () => ({ typeId: open.id, key: 'k', content: {}, ttl: 1 }), '/ttl'],
      [
        'a type and a typeId that contradict each other',
        () => ({ typeId: open.id, type: 'Product', key: 'k', content: {} }),
        '/type',
      ],
      ['an empty key', () => ({ typeId: open.id, key: '', content: {} }), '/key'],
      ['a key of 513 characters', () => ({ typeId: open.id, key: 'x'.repeat(513), content: {} }), '/key'],
      ['a key that is no string', () => ({ typeId: open.id, key: 1, content: {} }), '/key'],
      ['a key with a control character', () => ({ typeId: open.id, key: 'a\tb', content: {} }), '/key'],
      ...[null, [], 'text', 1, true].map((content): [string, () => object, string] => [
        `content of ${JSON.stringify(content)}`,
        () => ({ typeId: open.id, key: 'k', content }),
        '/content',
      ]),
      ['content over 256 KiB', () => ({ typeId: open.id, key: 'k', content: sized(262_145) }), '/content'],
    ])('rejects %s', async (_what, body, at) => expectError(await create(body()), 400, 'invalid_request', { at }));

    it('names every violation of the schema with the values that are allowed, and no value of the content', async () => {
      const reply = await create({ typeId: strict.id, key: 'k', content: { name: 7, tag: 'my-tag', other: 1 } });
      expectError(reply, 400, 'invalid_content');
      expect([detailPaths(reply).sort(), reply.text.includes('my-tag')]).toEqual([
        ['/content/name', '/content/other', '/content/price', '/content/tag'],
        false,
      ]);
    });

    it('names at most twenty violations', async () => {
      const content = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x${i}`, i]));
      expect(detailPaths(await create({ typeId: strict.id, key: 'k', content }))).toHaveLength(20);
    });

    it.each([
      ['dryRun', '?dryRun=true'],
      ['upsert', '?upsert=yes'],
      ['upsert', '?upsert=true&upsert=true'],
    ])('rejects the query parameter %s in %s', async (name, query) => {
      expectError(await create({ typeId: open.id, key: 'k', content: {} }, query), 400, 'invalid_request', {
        at: `/${name}`,
      });
    });
    it('rejects upsert in the body', async () =>
      expectError(await create({ typeId: open.id, key: 'k', content: {}, upsert: true }), 400, 'invalid_request', {
        at: '/upsert',
      }));
  });

  describe('?upsert=true', () => {
    it('answers 201 with Location, then 200 without, the object and its ETag', async () => {
      const put = (n: number) => create({ typeId: open.id, key: 'upserted', content: { n } }, '?upsert=true');
      const [first, second] = [await put(1), await put(2)];
      expect([first.status, first.headers.get('location')]).toEqual([
        201,
        expect.stringMatching(`/api/memory/objects/${first.body.id}$`),
      ]);
      expect([second.status, second.headers.get('location'), second.body]).toMatchObject([
        200,
        null,
        { id: first.body.id, content: { n: 2 }, revision: 2 },
      ]);
      expect(second.headers.get('etag')).not.toBe(first.headers.get('etag'));
    });
  });

  describe('404', () => {
    it.each([
      ['id', () => ({ typeId: newId() })],
      ['name', () => ({ type: 'Nothing' })],
    ])('answers a type of unknown %s', async (_what, named) => {
      expectError(await create({ ...named(), key: 'k', content: { price: 'wrong' } }), 404, 'not_found');
    });
  });

  describe('409', () => {
    it('names the object that has the key', async () => {
      const { id, key } = await newObject();
      expectError(await create({ typeId: strict.id, key, content: { price: 2 } }), 409, 'already_exists', { id });
      expect((await get(id)).body.content).toEqual({ price: 1 });
    });

    it('of several concurrent requests with one key exactly one creates an object', async () => {
      const { body: type } = await tenant.request('POST', '/api/memory/types', { type: 'Raced', jsonSchema: {} });
      const statuses = (
        await Promise.all(Array.from({ length: 8 }, () => create({ typeId: type.id, key: 'k', content: {} })))
      ).map(({ status }) => status);
      expect([
        statuses.toSorted(),
        (await tenant.request('GET', `/api/memory/objects?typeId=${type.id}`)).body.total,
      ]).toEqual([[201, ...Array<number>(7).fill(409)], 1]);
    });
  });

  it('returns content as the same JSON value, with members in the same order', async () => {
    const character = fc
      .integer({ min: 1, max: 0x10ffff })
      .filter((code) => code < 0xd800 || code > 0xdfff)
      .map((code) => String.fromCodePoint(code));
    const text = fc.oneof(
      fc.string({ unit: character, maxLength: 12 }),
      fc.constantFrom('', 'constructor', 'toString', '$ref', '\ud83d\udc0e', '\u2028', '"\\/'),
    );
    const number = fc.oneof(
      fc.maxSafeInteger(),
      fc
        .double({ noNaN: true, noDefaultInfinity: true })
        .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom(null, true, false),
        text,
        number,
        fc.array(tie('value'), { maxLength: 4 }),
        tie('object'),
      ),
      object: fc.dictionary(
        text.filter((name) => name !== '__proto__'),
        tie('value'),
        { maxKeys: 5, noNullPrototype: true },
      ),
    }));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          text.filter((name) => name !== '__proto__'),
          value,
          { maxKeys: 6, noNullPrototype: true },
        ),
        async (content) => {
          const created = await create({ typeId: open.id, key: newId(), content });
          const read = await get(created.body.id);
          expect([created.status, JSON.stringify(created.body.content), JSON.stringify(read.body.content)]).toEqual([
            201,
            JSON.stringify(content),
            JSON.stringify(content),
          ]);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('returns numbers as the client has written them', async () => {
    const content = '{"price":1.0,"rate":1.50,"many":1e2,"few":2.5E-3,"none":-0}';
    const { status, text, body } = await create(`{"typeId":"${open.id}","key":"${newId()}","content":${content}}`);
    expect([status, text]).toEqual([201, expect.stringContaining(`"content":${content}`)]);
    expect((await get(body.id)).text).toContain(`"content":${content}`);
  });
});

describe('GET /api/memory/objects/{id}', () => {
  it('400: rejects a query parameter', async () =>
    expectError(await get(newId(), '?include=x'), 400, 'invalid_request', { at: '/include' }));

  it.each([
    ['an unknown id', newId()],
    ['a malformed id', 'k'],
    ['the id of a type', 'type'],
  ])('404: answers %s', async (_what, id) => {
    expectError(await get(id === 'type' ? strict.id : id), 404, 'not_found');
  });
});

describe('PATCH /api/memory/objects/{id}', () => {
  const patch = (id: string, body: unknown, { query = '', headers = {} } = {}) =>
    tenant.request('PATCH', `/api/memory/objects/${id}${query}`, body, headers);

  describe('200', () => {
    it('replaces the whole content and answers with the whole object', async () => {
      const before = await newObject({ price: 1, name: 'old' });
      const { status, body } = await patch(before.id, { content: { price: 2 } });
      expect([status, body]).toEqual([
        200,
        { ...before, content: { price: 2 }, revision: 2, updatedAt: body.updatedAt },
      ]);
      expect([body.updatedAt >= before.updatedAt, (await get(before.id)).body]).toEqual([true, body]);
    });

    it('accepts a whole object as it was read, also a stale copy', async () => {
      const before = await newObject();
      const { status, body } = await patch(before.id, {
        ...before,
        revision: 7,
        schemaVersion: 3,
        createdAt: 'x',
        updatedAt: 'y',
        content: { price: 3 },
      });
      expect([status, body]).toEqual([
        200,
        { ...before, content: { price: 3 }, revision: 2, updatedAt: body.updatedAt },
      ]);
    });
  });

  describe('400', () => {
    it.each<[string, object, string]>([
      ['nothing to change', {}, ''],
      ['only members that are ignored', { revision: 1, schemaVersion: 1, createdAt: '', updatedAt: '' }, ''],
      ['another id', { id: newId(), content: { price: 1 } }, '/id'],
      ['another typeId', { typeId: newId(), content: { price: 1 } }, '/typeId'],
      ['another type', { type: 'Anything', content: { price: 1 } }, '/type'],
      ['another key', { key: 'new', content: { price: 1 } }, '/key'],
      ['content that is no object', { content: [] }, '/content'],
      ['content of null', { content: null }, '/content'],
      ['content over 256 KiB', { content: sized(262_145) }, '/content'],
      ['an unknown member', { value: 1 }, '/value'],
    ])('rejects %s', async (_what, body, at) =>
      expectError(await patch((await newObject()).id, body), 400, 'invalid_request', { at }),
    );

    it('rejects content that violates the schema, and keeps the old content', async () => {
      const { id } = await newObject();
      expectError(await patch(id, { content: { price: '1' } }), 400, 'invalid_content', { at: '/content/price' });
      expect((await get(id)).body).toMatchObject({ content: { price: 1 }, revision: 1 });
    });

    it('rejects query parameters', async () => {
      const { id } = await newObject();
      expectError(await patch(id, { content: { price: 2 } }, { query: '?upsert=true' }), 400, 'invalid_request', {
        at: '/upsert',
      });
    });
  });

  it.each([
    ['an unknown id', newId()],
    ['a malformed id', 'k'],
  ])('404: answers %s', async (_what, id) => expectError(await patch(id, { content: { price: 1 } }), 404, 'not_found'));
});

describe('DELETE /api/memory/objects/{id}', () => {
  const remove = (id: string, query = '', headers = {}) =>
    tenant.request('DELETE', `/api/memory/objects/${id}${query}`, undefined, headers);

  it('200: deletes the object, answers with its id, and frees its key', async () => {
    const { id, key } = await newObject();
    const reply = await remove(id);
    expect([reply.status, reply.body]).toEqual([200, { success: true, id }]);
    expect([(await get(id)).status, (await create({ typeId: strict.id, key, content: { price: 1 } })).status]).toEqual([
      404, 201,
    ]);
  });

  it('400: rejects query parameters', async () => {
    const { id } = await newObject();
    expectError(await remove(id, '?cascade=true'), 400, 'invalid_request', { at: '/cascade' });
    expect((await get(id)).status).toBe(200);
  });

  it('404: answers a deleted, an unknown and a malformed id', async () => {
    const { id } = await newObject();
    await remove(id);
    for (const gone of [id, newId(), 'k']) expectError(await remove(gone), 404, 'not_found');
  });
});
