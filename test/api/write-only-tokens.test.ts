import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import { anyId, anyTime, expectError } from '../support/expect-error.ts';
import { request } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { asAdministrator } from '../support/tenant-resources.ts';
import type { Tenant } from '../support/tenant.ts';

/** In names, keys and contents that the token has not sent: it must see it nowhere. */
const SECRET = 'hidden';
const jsonSchema = { type: 'object', properties: { [SECRET]: { type: 'string' } } };
const made = { id: anyId, schemaVersion: 1, createdAt: anyTime, updatedAt: anyTime };

let stack: RunningStack;
let tenant: Tenant;
let token: string;
let type: string;
let typeId: string;
let objectId: string;
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const restrictions = { scopes: ['memory:write'], addressRanges: [] };
  const as = await asAdministrator(stack, tenant);
  token = (await auth.createServerToken({ name: 'writer', expiresAt: undefined, restrictions }, as)).value;
});
beforeEach(async () => {
  type = `${SECRET}${newId()}`;
  typeId = (await tenant.request('POST', '/api/memory/types', { type, description: SECRET, jsonSchema })).body.id;
  const body = { typeId, key: SECRET, content: { [SECRET]: 'x' } };
  objectId = (await tenant.request('POST', '/api/memory/objects', body)).body.id;
});

/** By the token that may write and not read. */
async function write(method: string, path: string, body?: unknown) {
  const reply = await request(stack.baseUrl, method, path, { token, body });
  expect(JSON.stringify({ ...reply.body, content: undefined })).not.toContain(SECRET);
  return reply;
}
const objectPath = () => `/api/memory/objects/${objectId}`;
const typePath = () => `/api/memory/types/${typeId}`;
const lacksRead = expect.stringContaining('memory:read') as string;

describe('a server token with memory:write alone', () => {
  it('creates an object, and gets it with its id, as ever', async () => {
    const sent = { typeId, key: newId(), content: { a: 1 } };
    const { status, body } = await request(stack.baseUrl, 'POST', '/api/memory/objects', { token, body: sent });
    expect([status, body]).toEqual([201, { ...made, ...sent, type, revision: 1, updatedAt: body.createdAt }]);
  });

  it('replaces an object by its key', async () => {
    const body = { typeId, key: SECRET, content: { a: 1 } };
    const reply = await request(stack.baseUrl, 'POST', '/api/memory/objects?upsert=true', { token, body });
    expect([reply.status, reply.body.id, reply.body.content]).toEqual([200, objectId, { a: 1 }]);
  });

  it('creates a type', async () => {
    const { status, body } = await write('POST', '/api/memory/types', { type: `t${newId()}`, jsonSchema: {} });
    expect([status, body]).toMatchObject([201, { id: anyId, jsonSchema: {}, version: 1 }]);
  });

  it.each([
    ['content', { content: { a: 1 } }, 2],
    ['content and key', { content: { a: 1 }, key: SECRET }, 2],
    ['the stored id, which changes nothing', 'id', 1],
    ['members that are ignored, and the id', 'revision', 1],
  ])('gets of a PATCH with %s only what it has sent, and what the service makes', async (_what, given, revision) => {
    const body = typeof given === 'string' ? { id: objectId, ...(given !== 'id' && { [given]: 9 }) } : given;
    const reply = await request(stack.baseUrl, 'PATCH', objectPath(), { token, body });
    const { revision: _, ...sent } = body as Record<string, unknown>;
    expect([reply.status, reply.body]).toEqual([200, { ...made, ...sent, id: objectId, revision }]);
  });

  it('gets of a PUT of a type only what it has sent', async () => {
    const { status, body } = await write('PUT', typePath(), { displayName: 'Shown' });
    const { schemaVersion: _, ...ofType } = made;
    expect([status, body]).toEqual([200, { ...ofType, id: typeId, version: 1, state: 'active', displayName: 'Shown' }]);
    const { body: unchanged } = await write('PUT', typePath(), { id: typeId });
    expect(Object.keys(unchanged).sort()).toEqual(['createdAt', 'id', 'state', 'updatedAt', 'version']);
  });

  it('deletes an object, and a type without objects', async () => {
    expect((await write('DELETE', objectPath())).body).toEqual({ success: true, id: objectId });
    expect((await write('DELETE', typePath())).body).toEqual({ success: true, id: typeId });
  });

  it('may neither report by a dry run nor try a definition on the contents that exist', async () => {
    const forbidden = { not: { required: [SECRET] } };
    for (const [query, body] of [
      ['?dryRun=true', { displayName: 'x' }],
      ['?dryRun=true', { jsonSchema: forbidden }],
      ['?dryRun=true&force=true', { jsonSchema: forbidden }],
      ['', { jsonSchema: forbidden }],
      ['', { jsonSchema: { description: 'fits all' } }],
      ['', { idSchema: { properties: [`/${SECRET}`] } }],
      ['', { relations: [{ name: 'r', targetType: type, path: '/r', cardinality: 'one', required: true }] }],
    ] as const) {
      const reply = await request(stack.baseUrl, 'PUT', typePath() + query, { token, body });
      expect([reply.status, reply.body.code, reply.body.error]).toEqual([403, 'forbidden', lacksRead]);
    }
    expect((await tenant.request('GET', typePath())).body).toMatchObject({ version: 1, jsonSchema, change: null });
  });

  it('changes the definition of a type without objects, and by force of any', async () => {
    const { body: changed } = await write('PUT', `${typePath()}?force=true`, {
      jsonSchema: { not: {}, maxProperties: 9 },
    });
    expect(changed).not.toHaveProperty('change');
    await write('DELETE', objectPath());
    const reply = await write('PUT', typePath(), { jsonSchema: { maxProperties: 7 } });
    expect([reply.status, reply.body.jsonSchema]).toEqual([200, { maxProperties: 7 }]);
  });

  it.each([
    [
      'a key that is taken',
      'already_exists',
      () => write('POST', '/api/memory/objects', { typeId, key: SECRET, content: {} }),
    ],
    ['a name that is taken', 'already_exists', () => write('POST', '/api/memory/types', { type, jsonSchema: {} })],
    ['a type with objects', 'type_in_use', () => write('DELETE', typePath())],
    [
      'a target of references',
      'object_in_use',
      async () => {
        const relations = [{ name: 'r', targetType: type, path: '/r', cardinality: 'one' }];
        const source = (
          await tenant.request('POST', '/api/memory/types', { type: `t${newId()}`, jsonSchema: {}, relations })
        ).body;
        const body = { typeId: source.id, key: newId(), content: { r: SECRET } };
        expect((await tenant.request('POST', '/api/memory/objects', body)).status).toBe(201);
        return write('DELETE', objectPath());
      },
    ],
  ])('is told of %s that it is in the way, but no id, number or example', async (_what, code, act) => {
    const reply = await act();
    expectError(reply, 409, code);
    expect(Object.keys(reply.body).sort()).toEqual(['code', 'error', 'requestId']);
  });

  it.each([
    ['GET', () => objectPath()],
    ['GET', () => typePath()],
    ['GET', () => '/api/memory/objects'],
    ['GET', () => '/api/memory/types'],
    ['HEAD', () => objectPath()],
  ])('may not %s', async (method, path) => expect((await write(method, path())).status).toBe(403));
});
