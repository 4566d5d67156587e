import { expectError } from '../support/expect-error.ts';
import { untilAvailable } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Tenant } from '../support/tenant.ts';

const WRITERS = 16;
let tenant: Tenant;
beforeAll(async () => {
  tenant = await (await sharedStack()).tenant();
});

const newType = async (type: string) => {
  const { body, headers } = await tenant.request('POST', '/api/memory/types', { type, jsonSchema: {} });
  return { path: `/api/memory/types/${body.id}`, typeId: body.id as string, tag: headers.get('etag') as string };
};
const newObject = async (typeId: string) => {
  const { body, headers } = await tenant.request('POST', '/api/memory/objects', {
    typeId,
    key: 'k',
    content: { n: 0 },
  });
  return { path: `/api/memory/objects/${body.id}`, tag: headers.get('etag') as string };
};
const tagOf = async (path: string) => (await tenant.request('GET', path)).headers.get('etag') as string;

describe('a conditional GET', () => {
  it('is 304 until the type or the object changes, and then 200 with another ETag', async () => {
    const type = await newType('read');
    const object = await newObject(type.typeId);
    for (const [verb, { path, tag }, body] of [
      ['PATCH', object, { content: { n: 1 } }],
      ['PUT', type, { description: 'changed' }],
    ] as const) {
      const ask = () => tenant.request('GET', path, undefined, { 'If-None-Match': tag });
      const [unchanged, written, changed] = [await ask(), await tenant.request(verb, path, body), await ask()];
      expect([unchanged.status, unchanged.text, unchanged.headers.get('etag')]).toEqual([304, '', tag]);
      expect(written.headers.get('etag')).not.toBe(tag);
      expect([changed.status, changed.headers.get('etag')]).toEqual([200, written.headers.get('etag')]);
    }
  });

  it('of an object sees that its type has another name', async () => {
    const type = await newType('before');
    const { path, tag } = await newObject(type.typeId);
    await tenant.request('PUT', type.path, { type: 'after' });
    const { status, body } = await tenant.request('GET', path, undefined, { 'If-None-Match': tag });
    expect([status, body.type]).toEqual([200, 'after']);
  });

  it('of a type sees that the target of its relation has another name', async () => {
    const target = await newType('target');
    const relations = [{ name: 'to', targetType: 'target', path: '/to', cardinality: 'one' }];
    const given = { type: 'source', jsonSchema: {}, relations };
    const { body: source, headers } = await tenant.request('POST', '/api/memory/types', given);
    const tag = headers.get('etag') as string;
    const path = `/api/memory/types/${source.id}`;
    const ask = () => tenant.request('GET', path, undefined, { 'If-None-Match': tag });
    expect((await ask()).status).toBe(304);
    await tenant.request('PUT', target.path, { type: 'renamed' });
    const { status, body } = await ask();
    expect([status, body.relations[0].targetType]).toEqual([200, 'renamed']);
    const write = { description: 'of a stale copy' };
    expect((await tenant.request('PUT', path, write, { 'If-Match': tag })).status).toBe(412);
    expect((await tenant.request('PUT', path, write, { 'If-Match': await tagOf(path) })).status).toBe(200);
  });
});

describe('If-Match', () => {
  it('lets the write through in the named version, by any tag of a list, and with *', async () => {
    const type = await newType('written');
    const { path } = await newObject(type.typeId);
    for (const conditionOf of [(tag: string) => tag, () => '*', (tag: string) => `"x", ${tag}`]) {
      const condition = conditionOf(await tagOf(path));
      expect((await tenant.request('PATCH', path, { content: { n: 2 } }, { 'If-Match': condition })).status).toBe(200);
    }
    expect((await tenant.request('PUT', type.path, { description: 'x' }, { 'If-Match': type.tag })).status).toBe(200);
    expect((await tenant.request('DELETE', path, undefined, { 'If-Match': await tagOf(path) })).status).toBe(200);
  });

  it('is 412 in any other version, and by a weak tag, and changes nothing', async () => {
    const type = await newType('kept');
    const object = await newObject(type.typeId);
    for (const { path, verb, body } of [
      { path: object.path, verb: 'PATCH', body: { content: { n: 9 } } },
      { path: object.path, verb: 'DELETE' },
      { path: type.path, verb: 'PUT', body: { description: 'lost' } },
      { path: type.path, verb: 'DELETE' },
    ]) {
      const before = await tenant.request('GET', path);
      for (const condition of ['"0"', `W/${before.headers.get('etag')}`])
        expectError(await tenant.request(verb, path, body, { 'If-Match': condition }), 412, 'precondition_failed');
      const after = await tenant.request('GET', path);
      expect([after.text, after.headers.get('etag')]).toEqual([before.text, before.headers.get('etag')]);
    }
  });

  it('404 before 412: what does not exist has no version', async () => {
    const gone = '/api/memory/objects/019a5b3e-0c00-7000-8000-000000000001';
    expectError(await tenant.request('DELETE', gone, undefined, { 'If-Match': '"1"' }), 404, 'not_found');
  });

  it(`lets exactly one of ${WRITERS} writers through that have read the same version`, async () => {
    const { path, tag } = await newObject((await newType('raced')).typeId);
    const replies = await Promise.all(
      Array.from({ length: WRITERS }, (_, n) =>
        untilAvailable(() => tenant.requestOnce('PATCH', path, { content: { n } }, { 'If-Match': tag })),
      ),
    );
    const statuses = replies.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array(WRITERS - 1).fill(412)]);
    const winner = replies.find(({ status }) => status === 200);
    expect((await tenant.request('GET', path)).body).toEqual(winner?.body);
  });
});
