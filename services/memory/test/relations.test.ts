import { newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';
import { jsonSchema, relation, relationFixture } from './relation-fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

const { typesWith, put, contentOf, isGone } = relationFixture(() => token);

describe('a relation', () => {
  it('shows with its defaults and the present name of its target type', async () => {
    const { person, thing } = await typesWith();
    const shown = { ...relation('Person'), required: false, onDelete: 'restrict' };
    expect(thing.relations).toEqual([shown]);
    await token.putType(person.id, { type: 'Human' });
    const renamed = { ...shown, targetType: 'Human' };
    expect((await token.getType(thing.id)).relations).toEqual([renamed]);
    expect((await token.listTypes()).find(({ id }) => id === thing.id)!.relations).toEqual([renamed]);
    expect(await token.putType(thing.id, { relations: [renamed] })).toMatchObject({ version: 1, relations: [renamed] });
  });
  it.each([
    ['targetType', { targetType: 'Nobody' }],
    ['path', { path: 'owner' }],
    ['cardinality', { cardinality: 'few' }],
    ['onDelete', { onDelete: 'ignore' }],
    ['onDelete', { onDelete: 'setNull', required: true }],
    ['name', { name: '' }],
  ])('is refused for its %s: %j', async (at, wrong) => {
    await token.type({ type: 'Person' });
    expect(await reasonAndPathOf(token.createType({ relations: [{ ...relation('Person'), ...wrong }] }))).toEqual([
      'INVALID_REQUEST',
      `/relations/0/${at}`,
    ]);
  });
  it('may not set null where the schema forbids it', async () => {
    await token.type({ type: 'Person' });
    const make = (owner: object, path = '/owner') =>
      token.createType({
        jsonSchema: JSON.stringify({
          type: 'object',
          properties: { owner, 'a/b': owner },
          $defs: { key: { type: 'string' } },
        }),
        relations: [relation('Person', { onDelete: 'setNull', path })],
      });
    const refused = ['INVALID_REQUEST', '/relations/0/onDelete'];
    expect(await reasonAndPathOf(make({ type: 'string' }))).toEqual(refused);
    expect(await reasonAndPathOf(make({ $ref: '#/$defs/key' }))).toEqual(refused);
    expect(await reasonAndPathOf(make({ type: 'string' }, '/a~1b'))).toEqual(refused);
    await make({ type: ['string', 'null'] });
  });
  it('may not have its path below that of another relation', async () => {
    await token.type({ type: 'Person' });
    const relations = [
      relation('Person', { cardinality: 'many' }),
      relation('Person', { name: 'first', path: '/owner/0' }),
    ];
    expect(await reasonAndPathOf(token.createType({ relations }))).toEqual(['INVALID_REQUEST', '/relations/1/path']);
    await token.createType({ relations: [relation('Person'), relation('Person', { name: 'other', path: '/owners' })] });
  });
  it('points only to a type that is seen by all who see its own', async () => {
    await token.type({ type: 'Secret', visibility: 'private' });
    await token.type({ type: 'Sales', visibility: 'group', groupNames: ['sales'] });
    const make = (targetType: string, given: object) =>
      token.createType({ relations: [relation(targetType)], ...given });
    const refused = ['INVALID_REQUEST', '/relations/0/targetType'];
    expect(await reasonAndPathOf(make('Secret', {}))).toEqual(refused);
    expect(await reasonAndPathOf(make('Sales', { visibility: 'group', groupNames: ['sales', 'x'] }))).toEqual(refused);
    await make('Secret', { visibility: 'private' });
    const { memoryType } = await make('Sales', { visibility: 'group', groupNames: ['sales'] });
    expect(await reasonAndPathOf(token.putType(memoryType!.id, { visibility: 'organization' }))).toEqual([
      'INVALID_REQUEST',
      '/visibility',
    ]);
    const sales = (await token.listTypes()).find(({ type }) => type === 'Sales')!;
    expect(await reasonAndPathOf(token.putType(sales.id, { visibility: 'private' }))).toEqual([
      'INVALID_REQUEST',
      '/visibility',
    ]);
    const user = memory.as(userOf(token.principal.organizationId));
    expect(await reasonAndPathOf(user.createType({ relations: [relation('Sales')] }))).toEqual(refused);
  });
  it('keeps its target type from being deleted', async () => {
    const { person, thing } = await typesWith();
    expect((await errorOf(token.deleteType(person.id))).reason).toBe('TYPE_IN_USE');
    expect((await errorOf(token.cascadeType(person.id))).reason).toBe('TYPE_IN_USE');
    await token.putType(thing.id, { relations: [], updateMask: ['relations'] });
    await token.deleteType(person.id);
    const itself = await token.type({ type: 'Node', relations: [relation('Node')] });
    await token.deleteType(itself.id);
    expect(await token.listTypes()).toMatchObject([{ id: thing.id }]);
  });
});

describe('a write', () => {
  it('needs its targets, and names the path of one that is missing', async () => {
    const { person, thing } = await typesWith();
    expect(await reasonAndPathOf(put(thing.id, 't', { owner: 'ada' }))).toEqual(['INVALID_CONTENT', '/content/owner']);
    await put(person.id, 'ada', {});
    const { id } = await put(thing.id, 't', { owner: 'ada' });
    expect(await reasonAndPathOf(token.patchObject(id, { content: '{"owner":"bob"}' }))).toEqual([
      'INVALID_CONTENT',
      '/content/owner',
    ]);
    expect(await reasonAndPathOf(token.patchObject(id, { content: '{"owner":7}' }))).toEqual([
      'INVALID_CONTENT',
      '/content/owner',
    ]);
    await token.patchObject(id, { content: '{"owner":null}' });
    await token.patchObject(id, { content: '{}' });
  });
  it('of many keys names each that is missing or given twice', async () => {
    const { person, thing } = await typesWith({ cardinality: 'many', required: true });
    await put(person.id, 'ada', {});
    await put(person.id, 'bob', {});
    const { details } = await errorOf(put(thing.id, 't', { owner: ['ada', 'eve', 'ada', 1] }));
    expect(details.map(({ path }) => path).sort()).toEqual([
      '/content/owner/1',
      '/content/owner/2',
      '/content/owner/3',
    ]);
    for (const owner of [[], null, 'ada'])
      expect(await reasonAndPathOf(put(thing.id, 't', { owner }))).toEqual(['INVALID_CONTENT', '/content/owner']);
    await put(thing.id, 't', { owner: ['ada', 'bob'] });
  });
  it('does not look into an array of more keys than an object may hold', async () => {
    const { thing } = await typesWith({ cardinality: 'many' });
    const { details } = await errorOf(put(thing.id, 't', { owner: [...Array(100).fill('ada'), 1] }));
    expect(details).toEqual([
      { path: '/content/owner', message: expect.stringContaining('must not hold more than 100 keys') },
    ]);
  });
  it('may refer to its own object, and in a circle', async () => {
    const node = await token.type({ type: 'Node', jsonSchema, relations: [relation('Node', { onDelete: 'cascade' })] });
    const self = await put(node.id, 'self', { owner: 'self' });
    await token.deleteObject(self.id);
    const a = await put(node.id, 'a', {});
    const b = await put(node.id, 'b', { owner: 'a' });
    await token.patchObject(a.id, { content: '{"owner":"b"}' });
    await token.deleteObject(a.id);
    expect([await isGone(a.id), await isGone(b.id), (await token.listObjects()).total]).toEqual([true, true, 0]);
  });
});

describe('the deletion of a target', () => {
  it('is refused, with the objects that refer to it', async () => {
    const { person, thing } = await typesWith();
    const ada = await put(person.id, 'ada', {});
    const { id } = await put(thing.id, 't', { owner: 'ada' });
    expect(await errorOf(token.deleteObject(ada.id))).toMatchObject({
      reason: 'OBJECT_IN_USE',
      facts: { count: 1, examples: [{ id, type: 'Thing', key: 't' }] },
    });
    await token.patchObject(id, { content: '{}' });
    await token.deleteObject(ada.id);
    expect(await isGone(ada.id)).toBe(true);
  });
  it('says nothing of objects that the user may not see', async () => {
    const person = await token.type({ type: 'Person', jsonSchema });
    const hidden = await token.type({ visibility: 'private', jsonSchema, relations: [relation('Person')] });
    const ada = await put(person.id, 'ada', {});
    await put(hidden.id, 't', { owner: 'ada' });
    const user = memory.as(userOf(token.principal.organizationId));
    expect(await errorOf(user.deleteObject(ada.id))).toMatchObject({
      reason: 'OBJECT_IN_USE',
      facts: { examples: [] },
    });
    expect((await errorOf(user.deleteObject(ada.id))).facts).toEqual({ examples: [] });
  });
  it('deletes those whose relation cascades, through several types', async () => {
    const { person, thing } = await typesWith({ onDelete: 'cascade' });
    const part = await token.type({ jsonSchema, relations: [relation('Thing', { onDelete: 'cascade' })] });
    const ada = await put(person.id, 'ada', {});
    const things = [await put(thing.id, 't1', { owner: 'ada' }), await put(thing.id, 't2', { owner: 'ada' })];
    await put(part.id, 'p', { owner: 't1' });
    const free = await put(part.id, 'free', {});
    await token.deleteObject(ada.id);
    expect(await isGone(things[0]!.id)).toBe(true);
    expect((await token.listObjects()).items.map(({ id }) => id)).toEqual([free.id]);
    expect((await token.listObjects()).total).toBe(1);
  });
  it('deletes nothing when one of them is held by another relation', async () => {
    const { person, thing } = await typesWith({ onDelete: 'cascade' });
    const part = await token.type({ jsonSchema, relations: [relation('Thing')] });
    const ada = await put(person.id, 'ada', {});
    await put(thing.id, 't', { owner: 'ada' });
    const holder = await put(part.id, 'p', { owner: 't' });
    expect(await errorOf(token.deleteObject(ada.id))).toMatchObject({
      facts: { count: 1, examples: [{ id: holder.id }] },
    });
    expect((await token.listObjects()).total).toBe(3);
  });
  it('sets null, or takes the key out of the array, as a write of its own', async () => {
    const person = await token.type({ type: 'Person', jsonSchema });
    const thing = await token.type({
      jsonSchema,
      relations: [
        relation('Person', { onDelete: 'setNull', path: '/by/owner' }),
        relation('Person', { onDelete: 'setNull', path: '/users', name: 'users', cardinality: 'many' }),
      ],
    });
    const ada = await put(person.id, 'ada', {});
    await put(person.id, 'bob', {});
    const content = { n: 1, by: { owner: 'ada' }, users: ['bob', 'ada'] };
    const { id } = await put(thing.id, 't', content);
    await token.deleteObject(ada.id);
    expect(await contentOf(id)).toEqual({ n: 1, by: { owner: null }, users: ['bob'] });
    expect(await token.getObject(id)).toMatchObject({ revision: 2 });
    expect((await errorOf(token.deleteObject(ada.id))).reason).toBe('NOT_FOUND');
    await token.patchObject(id, { content: JSON.stringify({ ...content, by: {}, users: ['bob'] }) });
  });
  it('is refused where the array would become shorter than the schema allows', async () => {
    await token.type({ type: 'Person', jsonSchema });
    const thing = await token.type({
      jsonSchema: '{"properties":{"owner":{"type":"array","minItems":1}}}',
      relations: [relation('Person', { onDelete: 'setNull', cardinality: 'many' })],
    });
    const ada = await token.object({ type: 'Person', key: 'ada', content: '{}' });
    await put(thing.id, 't', { owner: ['ada'] });
    expect((await errorOf(token.deleteObject(ada.id))).reason).toBe('OBJECT_IN_USE');
  });
  it('is refused where the key of the object is made of the one that it would lose', async () => {
    await token.type({ type: 'Person', jsonSchema });
    const thing = await token.type({
      jsonSchema,
      idSchema: { properties: ['/owner'], separator: undefined },
      relations: [relation('Person', { onDelete: 'setNull' })],
    });
    const ada = await token.object({ type: 'Person', key: 'ada', content: '{}' });
    await token.object({ typeId: thing.id, key: undefined, content: '{"owner":"ada"}' });
    expect((await errorOf(token.deleteObject(ada.id))).reason).toBe('OBJECT_IN_USE');
  });
  it('together with its whole type ignores references inside the type', async () => {
    const node = await token.type({ type: 'Node', jsonSchema, relations: [relation('Node')] });
    await put(node.id, 'a', {});
    for (let n = 0; n < 60; n++) await put(node.id, `b${n}`, { owner: 'a' });
    await token.cascadeToEnd(node.id);
    expect((await token.listObjects()).total).toBe(0);
  });
});

describe('relations that change while objects exist', () => {
  it('are refused when a target is missing, and else hold for the objects that were there before', async () => {
    const person = await token.type({ type: 'Person', jsonSchema });
    const thing = await token.type({ jsonSchema });
    const { id } = await put(thing.id, 't', { owner: 'ada' });
    const relations = [relation('Person')];
    expect(await errorOf(token.putType(thing.id, { relations }))).toMatchObject({
      reason: 'SCHEMA_INCOMPATIBLE',
      facts: { count: 1, examples: [{ id, key: 't', path: '/content/owner' }] },
    });
    const ada = await put(person.id, 'ada', {});
    expect((await token.changeType(thing.id, { relations, dryRun: true })).report).toMatchObject({ compatible: true });
    await token.deleteObject(ada.id);
    const again = await put(person.id, 'ada', {});
    expect(await token.putType(thing.id, { relations })).toMatchObject({ version: 2, change: { state: 'done' } });
    expect((await errorOf(token.deleteObject(again.id))).reason).toBe('OBJECT_IN_USE');
    expect(await token.putType(thing.id, { relations: [relation('Person', { onDelete: 'cascade' })] })).toMatchObject({
      version: 3,
    });
    await token.deleteObject(again.id);
    expect(await isGone(id)).toBe(true);
  });
  it('are required only if every object has a key', async () => {
    const { person, thing } = await typesWith();
    await put(person.id, 'ada', {});
    const { id } = await put(thing.id, 't', {});
    const relations = [relation('Person', { required: true })];
    expect(await errorOf(token.putType(thing.id, { relations }))).toMatchObject({
      reason: 'SCHEMA_INCOMPATIBLE',
      facts: { count: 1, examples: [{ id, path: '/content/owner' }] },
    });
    await token.patchObject(id, { content: '{"owner":"ada"}' });
    expect(await token.putType(thing.id, { relations })).toMatchObject({ version: 2 });
  });
  it('no longer hold when they are removed', async () => {
    const { person, thing } = await typesWith();
    const ada = await put(person.id, 'ada', {});
    const { id } = await put(thing.id, 't', { owner: 'ada' });
    await token.putType(thing.id, { relations: [], updateMask: ['relations'] });
    await token.deleteObject(ada.id);
    expect(await contentOf(id)).toEqual({ owner: 'ada' });
    await token.patchObject(id, { content: '{"owner":"eve"}' });
    await token.deleteObject(id);
    await token.deleteType(person.id);
  });
});

it('writers of both ends at once leave no reference without its target', async () => {
  const { person, thing } = await typesWith();
  for (let round = 0; round < 8; round++) {
    const key = newId();
    const target = await put(person.id, key, {});
    const writes = await Promise.allSettled([
      put(thing.id, `a${key}`, { owner: key }),
      token.deleteObject(target.id),
      put(thing.id, `b${key}`, { owner: key }),
    ]);
    const reasons = writes.map((one) =>
      one.status === 'fulfilled' ? 'done' : (one.reason as { reason: string }).reason,
    );
    expect([
      ['done', 'OBJECT_IN_USE', 'done'],
      ['INVALID_CONTENT', 'done', 'INVALID_CONTENT'],
    ]).toContainEqual(reasons);
    expect(await isGone(target.id)).toBe(reasons[1] === 'done');
  }
});
