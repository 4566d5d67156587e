import { expectError } from '../support/expect-error.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Tenant } from '../support/tenant.ts';

// What a type says beside its jsonSchema, as JSON in and out: services/memory/test has the rules.
let tenant: Tenant;
beforeAll(async () => {
  tenant = await (await sharedStack()).tenant();
});

let names = 0;
const newType = async (given: object = {}) => {
  const body = { type: `Defined${++names}`, jsonSchema: {}, ...given };
  const reply = await tenant.request('POST', '/api/memory/types', body);
  expect(reply.status).toBe(201);
  return reply.body;
};
const post = (body: object, query = '') => tenant.request('POST', `/api/memory/objects${query}`, body);
const remove = ({ id }: { id: string }) => tenant.request('DELETE', `/api/memory/objects/${id}`);

const idSchema = { properties: ['/country', '/zip'], separator: '-' };
const embeddingSchema = { fields: ['/text'], model: 'm', dimensions: 768, metric: 'cosine' };

it('idSchema, embeddingSchema and relations come back as they were sent; absent keeps, null or [] clears, each once', async () => {
  const target = await newType();
  const relations = [
    {
      name: 'owner',
      targetType: target.type,
      path: '/owner',
      cardinality: 'one',
      required: false,
      onDelete: 'setNull',
    },
  ];
  const type = await newType({ idSchema, embeddingSchema, relations });
  expect(type).toMatchObject({ version: 1, idSchema, embeddingSchema, relations });
  const path = `/api/memory/types/${type.id}`;
  const put = async (body: object) => (await tenant.request('PUT', path, body)).body;
  expect(await put({ description: 'x' })).toMatchObject({ version: 1, idSchema, embeddingSchema, relations });
  expect(await put({ idSchema, embeddingSchema, relations })).toMatchObject({ version: 1 });
  expect(await put({ idSchema: null })).toMatchObject({ version: 2, idSchema: null, embeddingSchema, relations });
  expect(await put({ embeddingSchema: null })).toMatchObject({ version: 3, embeddingSchema: null, relations });
  const cleared = await put({ relations: [] });
  expect(cleared).toMatchObject({ version: 4, idSchema: null, embeddingSchema: null, relations: [] });
  expect((await tenant.request('GET', path)).body).toEqual(cleared);
});

it('an idSchema makes the key, by which an upsert finds the object, and which a PATCH may not change', async () => {
  const { id: typeId } = await newType({ idSchema });
  const content = { country: 'DE', zip: 10115 };
  const { status, body } = await post({ typeId, content });
  expect([status, body.key]).toEqual([201, 'DE-10115']);
  const again = await post({ typeId, content: { ...content, more: 1 } }, '?upsert=true');
  expect([again.status, again.body.id, again.body.revision]).toEqual([200, body.id, 2]);
  expectError(await post({ typeId, key: 'other', content }), 400, 'invalid_request', { at: '/key' });
  const moved = { content: { country: 'DE', zip: 1 } };
  const reply = await tenant.request('PATCH', `/api/memory/objects/${body.id}`, moved);
  expect([reply.status, reply.body.code]).toEqual([400, 'key_changed']);
});

describe('a relation', () => {
  const typesWith = async (given: object) => {
    const target = await newType();
    const relations = [{ name: 'owner', targetType: target.type, path: '/owner', cardinality: 'one', ...given }];
    return { target, source: await newType({ relations }) };
  };
  const pair = async (given: object) => {
    const { target, source } = await typesWith(given);
    const missing = await post({ typeId: source.id, key: 's', content: { owner: 'ada' } });
    expectError(missing, 400, 'invalid_content', { at: '/content/owner' });
    const ada = (await post({ typeId: target.id, key: 'ada', content: {} })).body;
    const object = (await post({ typeId: source.id, key: 's', content: { owner: 'ada' } })).body;
    return { ada, path: `/api/memory/objects/${object.id}`, id: object.id as string, source };
  };
  it('that restricts keeps its target: 409 with the objects that refer to it', async () => {
    const { ada, id, source } = await pair({});
    const examples = [{ id, type: source.type, key: 's' }];
    expectError(await remove(ada), 409, 'object_in_use', { count: 1, examples });
  });
  it('that cascades deletes what refers to the deleted object', async () => {
    const { ada, path } = await pair({ onDelete: 'cascade' });
    expect((await remove(ada)).status).toBe(200);
    expectError(await tenant.request('GET', path), 404, 'not_found');
  });
  it('that sets null takes the key out of the content', async () => {
    const { ada, path } = await pair({ onDelete: 'setNull' });
    expect((await remove(ada)).status).toBe(200);
    expect((await tenant.request('GET', path)).body).toMatchObject({ content: { owner: null }, revision: 2 });
  });
});
