import { newId } from 'platform/core/ids.ts';
import { errorOf, reasonAndPathOf, SCHEMA, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

describe('200', () => {
  it('changes the given fields and no other', async () => {
    const before = await token.type({ type: 'Note', description: 'old' });
    const after = await token.putType(before.id, { type: 'Memo', displayName: 'A memo' });
    expect(after).toEqual({ ...before, type: 'Memo', displayName: 'A memo', updatedAt: after.updatedAt });
    expect(after.updatedAt >= before.updatedAt).toBe(true);
    expect(await token.getType(before.id)).toEqual(after);
  });
  it('does not change a field that the update mask does not name', async () => {
    const { id } = await token.type({ description: 'kept' });
    expect(
      await token.putType(id, { description: 'lost', displayName: 'new', updateMask: ['displayName'] }),
    ).toMatchObject({ description: 'kept', displayName: 'new' });
  });
  it('raises the version when jsonSchema becomes another JSON value, and only then', async () => {
    const { id } = await token.type({ jsonSchema: '{"type":"object","minProperties":1}' });
    expect(await token.putType(id, { jsonSchema: '{ "minProperties": 1.0, "type": "object" }' })).toMatchObject({
      version: 1,
      jsonSchema: '{ "minProperties": 1.0, "type": "object" }',
    });
    expect(await token.putType(id, { displayName: 'x', visibility: 'private', description: 'y' })).toMatchObject({
      version: 1,
    });
    expect(await token.putType(id, { jsonSchema: '{"type":"object"}' })).toMatchObject({ version: 2 });
    expect(await token.putType(id, { jsonSchema: '{"type":"object"}' })).toMatchObject({ version: 2 });
  });
  it('accepts the members of its own answer', async () => {
    const { id, type, displayName, description, visibility, jsonSchema, groupNames, relations } = await token.type();
    expect(
      await token.putType(id, {
        id,
        type,
        displayName,
        description,
        visibility,
        jsonSchema,
        idSchema: undefined,
        embeddingSchema: undefined,
        groupNames,
        relations,
      }),
    ).toMatchObject({ id, version: 1 });
  });
  it('renames a type, whose objects are then found under the new name only', async () => {
    const { id } = await token.type({ type: 'Old' });
    const object = await token.object({ type: 'old' });
    await token.putType(id, { type: 'New' });
    expect(await token.getObject(object.id)).toMatchObject({ type: 'New' });
    expect((await token.listObjects({ type: 'new' })).items).toMatchObject([{ id: object.id, type: 'New' }]);
    expect(await token.listObjects({ type: 'Old' })).toEqual({ total: 0, items: [] });
    await expect(token.type({ type: 'OLD' })).resolves.toBeDefined();
  });
  it('changes the case of a name', async () => {
    const { id } = await token.type({ type: 'note' });
    expect(await token.putType(id, { type: 'NOTE' })).toMatchObject({ type: 'NOTE' });
  });
  it('hides a type that becomes private, and its objects', async () => {
    const user = memory.as(userOf(token.principal.organizationId));
    const { id } = await token.type();
    await token.object({ typeId: id });
    expect((await user.listObjects()).total).toBe(1);
    await token.putType(id, { visibility: 'private' });
    expect(await user.listObjects()).toEqual({ total: 0, items: [] });
    expect(await user.listTypes()).toEqual([]);
  });
  it('validates new objects against the changed schema', async () => {
    const { id } = await token.type();
    await token.putType(id, { jsonSchema: '{"required":["name"]}' });
    expect(await reasonAndPathOf(token.createObject({ typeId: id }))).toEqual(['INVALID_CONTENT', '/content/name']);
    expect(await token.object({ typeId: id, content: '{"name":1}' })).toMatchObject({ schemaVersion: 2 });
  });
  it('applies all of 30 concurrent updates', async () => {
    const { id } = await token.type();
    const written = await Promise.all(
      Array.from({ length: 30 }, (_, n) => token.putType(id, { jsonSchema: `{"minProperties":${n}}` })),
    );
    expect(Math.max(...written.map(({ version }) => version))).toBe(31);
  });
});

describe('400', () => {
  it('rejects a body without members', async () => {
    const { id } = await token.type();
    expect((await errorOf(token.putType(id, {}))).reason).toBe('INVALID_REQUEST');
  });
  it.each([
    ['id', { id: newId() }],
    ['type', { type: 'a b' }],
    ['displayName', { displayName: '' }],
    ['visibility', { visibility: 'public' }],
    ['jsonSchema', { jsonSchema: '[]' }],
    ['jsonSchema', { jsonSchema: 'null' }],
  ])('names %s: %j', async (member, body) => {
    const before = await token.type();
    expect(await reasonAndPathOf(token.putType(before.id, body))).toEqual(['INVALID_REQUEST', `/${member}`]);
    expect(await token.getType(before.id)).toEqual(before);
  });
  it('rejects an invalid schema', async () => {
    const { id } = await token.type();
    expect((await errorOf(token.putType(id, { jsonSchema: '{"type":1}' }))).reason).toBe('INVALID_SCHEMA');
  });
});

describe('404', () => {
  it("is the same for a malformed, an unknown, a hidden and another organization's id", async () => {
    const hidden = await token.type({ visibility: 'private' });
    const foreign = await memory.organization().type();
    const user = memory.as(userOf(token.principal.organizationId));
    const unknown = await errorOf(user.putType(newId(), { displayName: 'x' }));
    expect(unknown.reason).toBe('NOT_FOUND');
    for (const id of ['x', hidden.id, foreign.id])
      expect(await errorOf(user.putType(id, { displayName: 'x' }))).toEqual(unknown);
    expect(await token.getType(hidden.id)).toEqual(hidden);
  });
});

describe('409', () => {
  it('gives the id of the type that has the name', async () => {
    const taken = await token.type({ type: 'Taken' });
    const { id } = await token.type();
    expect(await errorOf(token.putType(id, { type: 'TAKEN' }))).toMatchObject({
      reason: 'ALREADY_EXISTS',
      facts: { id: taken.id },
    });
  });
  it('gives the number of objects that a new schema would break; accepts an equal schema', async () => {
    const { id } = await token.type();
    const one = await token.object({ typeId: id });
    await token.object({ typeId: id });
    const broken = '{"required":["name"]}';
    expect(await errorOf(token.putType(id, { jsonSchema: broken }))).toMatchObject({
      reason: 'SCHEMA_INCOMPATIBLE',
      facts: { count: 2 },
    });
    expect(await token.putType(id, { jsonSchema: JSON.stringify(SCHEMA, null, 1), displayName: 'x' })).toMatchObject({
      version: 1,
      displayName: 'x',
    });
    await token.deleteObject(one.id);
    expect(await errorOf(token.putType(id, { jsonSchema: broken }))).toMatchObject({ facts: { count: 1 } });
  });
});
