import { newId } from 'platform/core/ids.ts';
import { expectError } from '../support/expect-error.ts';
import type { Reply } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const jsonSchema = { type: 'object', properties: { price: { type: 'number' }, name: { type: 'string' } } };

let stack: RunningStack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
});

let names = 0;
const newType = async (given: object = {}) =>
  (await tenant.request('POST', '/api/memory/types', { type: `Type${++names}`, jsonSchema, ...given })).body;
const addObject = (typeId: string, key = 'k') =>
  tenant.request('POST', '/api/memory/objects', { typeId, key, content: { price: 1 } });
const get = async (id: string) => (await tenant.request('GET', `/api/memory/types/${id}`)).body;

describe('PUT /api/memory/types/{id}', () => {
  const put = (id: string, body: unknown, { query = '', headers = {} } = {}): Promise<Reply> =>
    tenant.request('PUT', `/api/memory/types/${id}${query}`, body, headers);

  describe('200', () => {
    it('changes the fields that the body names and answers with the whole type', async () => {
      const before = await newType({ description: 'old' });
      const { status, body } = await put(before.id, { displayName: 'New', visibility: 'private' });
      expect([status, body]).toEqual([
        200,
        { ...before, displayName: 'New', visibility: 'private', updatedAt: body.updatedAt },
      ]);
      expect([body.updatedAt >= before.updatedAt, await get(before.id)]).toEqual([true, body]);
    });

    it('accepts a whole type as it was read, and changes nothing', async () => {
      const before = await newType();
      const { status, body } = await put(before.id, before);
      expect([status, body]).toEqual([200, { ...before, updatedAt: body.updatedAt }]);
    });

    it('ignores version, state and times of a stale copy', async () => {
      const before = await newType();
      const { body } = await put(before.id, {
        ...before,
        version: 9,
        state: 'deleting',
        createdAt: 'x',
        updatedAt: 'y',
        description: 'd',
      });
      expect(body).toEqual({ ...before, description: 'd', updatedAt: body.updatedAt });
    });

    it('renames the type, also in its objects and filters, and frees the old name', async () => {
      const before = await newType();
      const { body: object } = await addObject(before.id);
      const renamed = `Renamed${++names}`;
      expect((await put(before.id, { type: renamed })).body).toMatchObject({
        id: before.id,
        type: renamed,
        version: 1,
      });
      expect((await tenant.request('GET', `/api/memory/objects/${object.id}`)).body.type).toBe(renamed);
      expect((await tenant.request('GET', `/api/memory/objects?type=${renamed}`)).body.total).toBe(1);
      expect((await tenant.request('POST', '/api/memory/types', { type: before.type, jsonSchema })).status).toBe(201);
    });

    it('accepts a new name that differs only in case', async () => {
      const before = await newType();
      expect((await put(before.id, { type: before.type.toUpperCase() })).body.type).toBe(before.type.toUpperCase());
    });

    it('raises the version by one when the schema changes as a JSON value, and only then', async () => {
      const { id } = await newType();
      const versions = [];
      for (const body of [
        { description: 'x' },
        { jsonSchema: { properties: { name: { type: 'string' }, price: { type: 'number' } }, type: 'object' } },
        { jsonSchema: {} },
        { jsonSchema: {} },
        { idSchema: null, embeddingSchema: null, relations: [], groupNames: [] },
        { jsonSchema },
      ]) {
        versions.push((await put(id, body)).body.version);
      }
      expect(versions).toEqual([1, 1, 2, 2, 2, 3]);
    });

    it('validates new objects against the new schema', async () => {
      const { id } = await newType();
      await put(id, { jsonSchema: { required: ['name'] } });
      expectError(await addObject(id), 400, 'invalid_content', { at: '/content/name' });
      const { body } = await tenant.request('POST', '/api/memory/objects', {
        typeId: id,
        key: 'k',
        content: { name: 'n' },
      });
      expect(body.schemaVersion).toBe(2);
    });

    it('changes other fields than the schema while objects exist', async () => {
      const { id } = await newType();
      await addObject(id);
      expect((await put(id, { description: 'x', jsonSchema: { ...jsonSchema } })).status).toBe(200);
    });
  });

  describe('400', () => {
    let id: string;
    beforeAll(async () => {
      ({ id } = await newType());
    });
    it.each<[string, object, string]>([
      ['nothing to change', {}, ''],
      ['only members that are ignored', { version: 1, state: 'active', createdAt: '', updatedAt: '' }, ''],
      ['another id', { id: newId(), description: 'x' }, '/id'],
      ['another id alone', { id: newId() }, '/id'],
      ['an unknown member', { colour: 1 }, '/colour'],
      ['a member that is set by the path', { pathId: newId() }, '/pathId'],
      ['a member that is set by the gateway', { updateMask: { paths: [] } }, '/updateMask'],
      ['a malformed name', { type: 'a b' }, '/type'],
      ['a null name', { type: null }, '/type'],
      ['a null description', { description: null }, '/description'],
      ['an unknown visibility', { visibility: 'all' }, '/visibility'],
      ['an empty displayName', { displayName: '' }, '/displayName'],
      ['a null schema', { jsonSchema: null }, '/jsonSchema'],
    ])('rejects %s', async (_what, body, at) => expectError(await put(id, body), 400, 'invalid_request', { at }));

    it('rejects an invalid schema', async () =>
      expectError(await put(id, { jsonSchema: { type: 'nothing' } }), 400, 'invalid_schema', {
        at: '/jsonSchema/type',
      }));

    it.each(['force=yes', 'dryRun=1', 'upsert=true', 'cascade=false'])('rejects ?%s', async (query) => {
      expectError(await put(id, { description: 'x' }, { query: `?${query}` }), 400, 'invalid_request', {
        at: `/${query.split('=')[0]}`,
      });
    });

    it('leaves the type as it was', async () => {
      const type = await get(id);
      expect([type.version, type.description, type.createdAt]).toEqual([1, '', type.updatedAt]);
    });
  });

  describe('404', () => {
    it.each([
      ['an unknown id', newId()],
      ['a malformed id', 'nothing'],
    ])('answers %s', async (_what, id) => expectError(await put(id, { description: 'x' }), 404, 'not_found'));
  });

  describe('409', () => {
    it('names the type that has the name', async () => {
      const [one, other] = [await newType(), await newType()];
      expectError(await put(one.id, { type: other.type.toLowerCase() }), 409, 'already_exists', { id: other.id });
    });

    it('rejects a schema that objects would break, with their count and examples', async () => {
      const { id } = await newType();
      const { body: object } = await addObject(id, 'a');
      await addObject(id, 'b');
      const broken = { required: ['missing'] };
      const reply = await put(id, { jsonSchema: broken });
      expectError(reply, 409, 'schema_incompatible', { count: 2, examples: reply.body.examples });
      expect(reply.body.examples).toContainEqual({
        id: object.id,
        key: 'a',
        path: '/content/missing',
        message: expect.stringMatching(/^missing /),
      });
      expect((await get(id)).version).toBe(1);
      expect((await put(id, { jsonSchema: broken }, { query: '?force=true' })).body).toMatchObject({ version: 2 });
    });
    it('a dry run answers the report', async () => {
      const { id } = await newType();
      await addObject(id, 'a');
      const reply = await put(id, { jsonSchema: { required: ['missing'] } }, { query: '?dryRun=true' });
      expect([reply.status, reply.body]).toMatchObject([200, { compatible: false, version: 2, checked: 1, count: 1 }]);
      expect(await get(id)).toMatchObject({ version: 1, change: { action: 'dryRun', state: 'done' } });
    });
    it('a dry run and a refused change leave the ETag as good for If-Match as it was', async () => {
      const { id } = await newType();
      await addObject(id, 'a');
      const etagOf = async () => (await tenant.request('GET', `/api/memory/types/${id}`)).headers.get('etag')!;
      const headers = { 'If-Match': await etagOf() };
      const broken = { jsonSchema: { required: ['missing'] } };
      expect((await put(id, broken, { query: '?dryRun=true', headers })).status).toBe(200);
      expect((await put(id, broken, { headers })).status).toBe(409);
      const present = { 'If-Match': await etagOf() };
      expect((await put(id, { description: 'd' }, { headers: present })).status).toBe(200);
      for (const old of [headers, present])
        expect((await put(id, { description: 'e' }, { headers: old })).status).toBe(412);
    });
  });
});

describe('DELETE /api/memory/types/{id}', () => {
  const remove = (id: string, query = '', headers = {}) =>
    tenant.request('DELETE', `/api/memory/types/${id}${query}`, undefined, headers);

  it('200: deletes the type, answers with its id, and frees its name', async () => {
    const { id, type } = await newType();
    const reply = await remove(id);
    expect([reply.status, reply.body]).toEqual([200, { success: true, id }]);
    expectError(await tenant.request('GET', `/api/memory/types/${id}`), 404, 'not_found');
    expect((await tenant.request('POST', '/api/memory/types', { type, jsonSchema })).status).toBe(201);
  });

  it('200: deletes a type whose objects are deleted', async () => {
    const { id } = await newType();
    const { body } = await addObject(id);
    await tenant.request('DELETE', `/api/memory/objects/${body.id}`);
    expect((await remove(id)).status).toBe(200);
  });

  it.each([
    ['cascade', '?cascade=yes'],
    ['force', '?force=true'],
  ])('400: rejects the query parameter %s in %s', async (name, query) => {
    const { id } = await newType();
    expectError(await remove(id, query), 400, 'invalid_request', { at: `/${name}` });
    expect((await get(id)).id).toBe(id);
  });

  it('200: ?cascade=true deletes the type with its objects', async () => {
    const { id } = await newType();
    const { body } = await addObject(id);
    expect((await remove(id, '?cascade=true')).body).toEqual({ success: true, id });
    expectError(await tenant.request('GET', `/api/memory/objects/${body.id}`), 404, 'not_found');
  });

  it('404: there is nothing to cancel', async () => {
    const { id } = await newType();
    expectError(await tenant.request('DELETE', `/api/memory/types/${id}/change`), 404, 'not_found');
  });

  it('404: answers a deleted, an unknown and a malformed id', async () => {
    const { id } = await newType();
    await remove(id);
    for (const gone of [id, newId(), 'nothing']) expectError(await remove(gone), 404, 'not_found');
  });

  it('409: keeps a type that has objects, and says how many', async () => {
    const { id } = await newType();
    for (const key of ['a', 'b', 'c']) await addObject(id, key);
    expectError(await remove(id), 409, 'type_in_use', { count: 3 });
  });

  it('409 or 404: creating an object while its type is deleted never leaves it without a type', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await newType();
      const [created, removed] = await Promise.all([addObject(id), remove(id)]);
      expect([
        [201, 409],
        [404, 200],
      ]).toContainEqual([created.status, removed.status]);
    }
  });
});
