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

describe('the codings of a large reply', () => {
  const CODINGS = ['identity', 'gzip', 'br'];
  let path: string;
  let typePath: string;
  beforeAll(async () => {
    const type = await newType('coded');
    typePath = type.path;
    await tenant.request('PUT', typePath, { description: 'y'.repeat(2_000) });
    path = (await newObject(type.typeId)).path;
    await tenant.request('PATCH', path, { content: { text: 'x'.repeat(2_000) } });
    // its ETag tells of the objects that were read
    await tenant.request('PUT', `${typePath}?dryRun=true`, { jsonSchema: { type: 'object', maxProperties: 1 } });
  });
  const ask = async (coding: string, headers: Record<string, string> = {}, method = 'GET', at = path) => {
    const reply = await tenant.request(method, at, undefined, { 'Accept-Encoding': coding, ...headers });
    const [status, tag, encoding] = [reply.status, reply.headers.get('etag')!, reply.headers.get('content-encoding')];
    return { status, tag, encoding: encoding ?? 'identity', vary: reply.headers.get('vary'), text: reply.text };
  };

  it('have strong ETags of their own, also by HEAD, and all replies vary by Accept-Encoding', async () => {
    for (const at of [path, typePath]) {
      const full = await Promise.all(CODINGS.map((coding) => ask(coding, {}, 'GET', at)));
      expect(full.map(({ encoding }) => encoding)).toEqual(CODINGS);
      expect(new Set(full.map(({ tag }) => tag)).size).toBe(3);
      expect(new Set(full.map(({ text }) => text)).size).toBe(1);
      for (const { tag, vary } of full)
        expect([tag, vary]).toEqual([expect.stringMatching(/^"/), 'Accept-Encoding, Origin']);
      const heads = await Promise.all(CODINGS.map((coding) => ask(coding, {}, 'HEAD', at)));
      expect(heads).toEqual(full.map((reply) => ({ ...reply, text: '' })));
    }
  });

  it('If-Match takes the ETag of any coding, of an object and of a type, until the version changes', async () => {
    for (const coding of CODINGS) {
      for (const [verb, at, body] of [
        ['PATCH', path, { content: { text: coding.padEnd(1_900, 'x') } }],
        ['PUT', typePath, { description: coding.padEnd(1_900, 'y') }],
      ] as const) {
        const { tag } = await ask(coding, {}, 'GET', at);
        const write = () => tenant.request(verb, at, body, { 'If-Match': `"other", ${tag}` });
        const weak = await tenant.request(verb, at, body, { 'If-Match': `W/${tag}` });
        expect([weak.status, (await write()).status, (await write()).status]).toEqual([412, 200, 412]);
      }
    }
  });

  it('If-None-Match is 304 with the ETag that the client holds, if it takes that coding now', async () => {
    const [plain, gzip, br] = await Promise.all(CODINGS.map((coding) => ask(coding)));
    for (const [coding, held] of [
      ['gzip', gzip],
      ['br, gzip', gzip],
      ['gzip', plain],
      ['identity', plain],
      ['br', br],
    ] as const) {
      for (const condition of [held!.tag, `W/${held!.tag}`, `"other", ${held!.tag}`]) {
        const reply = await ask(coding, { 'If-None-Match': condition });
        expect(reply).toEqual({ ...held, status: 304, encoding: 'identity', text: '' });
      }
    }
    for (const [coding, held] of [
      ['identity', gzip],
      ['gzip', br],
      ['gzip, identity;q=0', plain],
    ] as const) {
      const { status, tag, encoding } = await ask(coding, { 'If-None-Match': held!.tag });
      expect([status, tag === held!.tag, encoding]).toEqual([200, false, coding.split(',')[0]]);
    }
    expect(await ask('gzip', { 'If-None-Match': '*' })).toMatchObject({ status: 304, tag: gzip!.tag });
  });
});
