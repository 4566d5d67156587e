import { newId } from 'platform/core/ids.ts';
import { errorOf, SCHEMA, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  token = memory.organization();
});

const STRICTER = JSON.stringify({ ...SCHEMA, properties: { price: { type: 'number', maximum: 10 } } });
const priced = (typeId: string, price: number, key = newId()) =>
  token.object({ typeId, key, content: JSON.stringify({ price }) });

describe('a new schema that all objects obey', () => {
  it('takes its place, and the objects stay as they are', async () => {
    const { id } = await token.type();
    const object = await priced(id, 7);
    const after = await token.putType(id, { jsonSchema: STRICTER, displayName: 'also' });
    expect(after).toMatchObject({ version: 2, jsonSchema: STRICTER, displayName: 'also', state: 'active' });
    expect(after.change).toMatchObject({ action: 'update', state: 'done', checked: 1, of: 1, count: 0, examples: [] });
    expect(await token.getType(id)).toEqual(after);
    expect(await token.listTypes()).toEqual([after]);
    expect(await token.getObject(object.id)).toEqual(object);
    expect((await errorOf(priced(id, 11))).reason).toBe('INVALID_CONTENT');
    expect(await priced(id, 9)).toMatchObject({ schemaVersion: 2 });
  });
  it('adds an optional property by the PUT alone', async () => {
    const { id } = await token.type();
    await priced(id, 1);
    const jsonSchema = JSON.stringify({ ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: 'string' } } });
    expect(await token.putType(id, { jsonSchema })).toMatchObject({ version: 2, state: 'active' });
    expect(await token.object({ typeId: id, content: '{"price":1,"note":"x"}' })).toMatchObject({ schemaVersion: 2 });
  });
  it('is checked against more objects than are read at once', async () => {
    const { id } = await token.type();
    await Promise.all(Array.from({ length: 70 }, (_, n) => priced(id, n)));
    const jsonSchema = JSON.stringify({ ...SCHEMA, properties: { price: { type: 'number', maximum: 69 } } });
    expect((await token.putType(id, { jsonSchema })).change).toMatchObject({ state: 'done', checked: 70, of: 70 });
  });
});

describe('a new schema that objects would break', () => {
  it('is refused with their count and ten examples, and nothing changes', async () => {
    const { id } = await token.type();
    await priced(id, 7);
    const broken = new Map<string, string>();
    for (let n = 0; n < 12; n++) {
      const object = await priced(id, 20 + n, `k${n}`);
      broken.set(object.id, object.key);
    }
    const before = await token.getType(id);
    const { reason, facts } = await errorOf(token.putType(id, { jsonSchema: STRICTER, type: 'Renamed' }));
    const examples = facts.examples as { id: string; key: string; path: string; message: string }[];
    expect([reason, facts.count, examples.length]).toEqual(['SCHEMA_INCOMPATIBLE', 12, 10]);
    for (const example of examples)
      expect(example).toEqual({
        id: expect.any(String),
        key: broken.get(example.id),
        path: '/content/price',
        message: expect.stringContaining('10'),
      });
    const { change, ...type } = await token.getType(id);
    expect({ ...type, change: undefined }).toEqual(before);
    expect(change).toMatchObject({ action: 'update', state: 'failed', checked: 13, count: 12, examples });
    expect(await priced(id, 99)).toMatchObject({ schemaVersion: 1 });
    await token.putType(id, { displayName: 'still writable' });
  });
  it('is told of what an earlier release took for a date-time, which stays as it is', async () => {
    const timed = (at: object) => JSON.stringify({ type: 'object', properties: { at } });
    const { id } = await token.type({ jsonSchema: timed({ type: 'string' }) });
    const object = await token.object({ typeId: id, content: '{"at":"2026-01-01 00:00:00Z"}' });
    // Without the objects being looked at, as it is after an upgrade.
    await token.changeType(id, { jsonSchema: timed({ type: 'string', format: 'date-time' }), force: true });
    expect(await token.getObject(object.id)).toEqual(object);
    const { reason, facts } = await errorOf(
      token.putType(id, { jsonSchema: timed({ type: 'string', format: 'date-time', minLength: 1 }) }),
    );
    expect([reason, facts.count]).toEqual(['SCHEMA_INCOMPATIBLE', 1]);
    expect(facts.examples).toEqual([expect.objectContaining({ id: object.id, path: '/content/at' })]);
    await token.patchObject(object.id, { content: '{"at":"2026-01-01T00:00:00Z"}' });
  });
  it('takes its place by force of an admin, and the objects stay readable', async () => {
    const { id } = await token.type();
    const object = await priced(id, 20);
    const user = memory.as(userOf(token.principal.organizationId));
    expect((await errorOf(user.changeType(id, { jsonSchema: STRICTER, force: true }))).reason).toBe('ADMIN_REQUIRED');
    const { memoryType } = await token.changeType(id, { jsonSchema: STRICTER, force: true });
    expect(memoryType).toMatchObject({ version: 2, state: 'active', jsonSchema: STRICTER });
    expect(await token.getObject(object.id)).toMatchObject({ schemaVersion: 1, content: '{"price":20}' });
    expect((await errorOf(token.patchObject(object.id, { content: '{"price":21}' }))).reason).toBe('INVALID_CONTENT');
    const { report } = await token.changeType(id, { jsonSchema: STRICTER, dryRun: true });
    expect(report).toMatchObject({ compatible: false, version: 2, checked: 1, count: 1 });
  });
  it('gives back the stored bytes that it would take', async () => {
    const limited = memory.organization({ limits: { memory_bytes: 70_000 } });
    const { id } = await limited.type();
    await limited.object({ typeId: id });
    const large = JSON.stringify({ ...SCHEMA, required: ['no'], description: 'x'.repeat(20_000) });
    for (let n = 0; n < 3; n++)
      expect((await errorOf(limited.putType(id, { jsonSchema: large }))).reason).toBe('SCHEMA_INCOMPATIBLE');
    await limited.putType(id, { jsonSchema: JSON.stringify({ ...SCHEMA, description: 'x'.repeat(20_000) }) });
  });
});

describe('a new idSchema', () => {
  const jsonSchema = '{"type":"object"}';
  it('takes its place when it derives the key that every object has', async () => {
    const { id } = await token.type({ jsonSchema });
    await token.object({ typeId: id, key: 'a', content: '{"name":"a"}' });
    expect(await token.putType(id, { idSchema: { properties: ['/name'] } })).toMatchObject({ version: 2 });
    expect(await token.object({ typeId: id, key: undefined, content: '{"name":"b"}' })).toMatchObject({ key: 'b' });
  });
  it('is refused when an object has another key, or no value for it', async () => {
    const { id } = await token.type({ jsonSchema });
    const other = await token.object({ typeId: id, key: 'a', content: '{"name":"b"}' });
    const none = await token.object({ typeId: id, key: 'c', content: '{}' });
    const { reason, facts } = await errorOf(token.putType(id, { idSchema: { properties: ['/name'] } }));
    expect([reason, facts]).toMatchObject([
      'SCHEMA_INCOMPATIBLE',
      {
        count: 2,
        examples: [
          { id: other.id, key: 'a', path: '/key' },
          { id: none.id, key: 'c', path: '/content/name' },
        ],
      },
    ]);
  });
});

describe('a dry run', () => {
  it('reports what a change would break, and changes nothing', async () => {
    const { id } = await token.type();
    await priced(id, 7);
    const { id: wrong, key } = await priced(id, 20);
    const before = await token.getType(id);
    const { memoryType, report } = await token.changeType(id, { jsonSchema: STRICTER, dryRun: true });
    expect(memoryType).toBeUndefined();
    expect(report).toEqual({
      compatible: false,
      version: 2,
      checked: 2,
      count: 1,
      examples: [{ id: wrong, key, path: '/content/price', message: expect.any(String) }],
      tookMs: expect.any(Number),
    });
    const { change, ...after } = await token.getType(id);
    expect({ ...after, change: undefined }).toEqual(before);
    expect(change).toMatchObject({ action: 'dryRun', state: 'done', count: 1 });
    expect(await priced(id, 30)).toMatchObject({ schemaVersion: 1 });
  });
  it('says that a compatible change is one, with the version that the type would get', async () => {
    const { id } = await token.type();
    await priced(id, 7);
    const run = async (body: object) => (await token.changeType(id, { ...body, dryRun: true })).report;
    expect(await run({ jsonSchema: STRICTER })).toMatchObject({ compatible: true, version: 2, checked: 1, count: 0 });
    expect(await run({ displayName: 'x' })).toMatchObject({ compatible: true, version: 1 });
    expect(await token.getType(id)).toMatchObject({ version: 1, displayName: expect.not.stringMatching('^x$') });
  });
  it('refuses what a change refuses for another reason', async () => {
    const [{ id }, other] = [await token.type(), await token.type()];
    expect((await errorOf(token.changeType(id, { type: other.type, dryRun: true }))).reason).toBe('ALREADY_EXISTS');
    expect((await errorOf(token.changeType(id, { jsonSchema: '{"type":1}', dryRun: true }))).reason).toBe(
      'INVALID_SCHEMA',
    );
    expect((await errorOf(token.changeType(newId(), { displayName: 'x', dryRun: true }))).reason).toBe('NOT_FOUND');
  });
});

describe('the deletion of a type with its objects', () => {
  it('deletes all of them, for an admin', async () => {
    const { id } = await token.type();
    const objects = await Promise.all(Array.from({ length: 70 }, () => token.object({ typeId: id })));
    const user = memory.as(userOf(token.principal.organizationId));
    expect((await errorOf(user.cascadeType(id))).reason).toBe('ADMIN_REQUIRED');
    expect(await errorOf(token.deleteType(id))).toMatchObject({ reason: 'TYPE_IN_USE', facts: { count: 70 } });
    await token.cascadeToEnd(id);
    expect((await errorOf(token.getType(id))).reason).toBe('NOT_FOUND');
    expect((await errorOf(token.getObject(objects[0]!.id))).reason).toBe('NOT_FOUND');
    expect((await token.listObjects()).total).toBe(0);
    expect((await errorOf(token.cascadeType(id))).reason).toBe('NOT_FOUND');
  });
  it('of a type without objects is a deletion', async () => {
    const { id } = await token.type();
    expect(await token.cascadeType(id)).toMatchObject({ deleted: { success: true, id } });
  });
});

describe('a change that takes longer than a request waits', () => {
  let slow: Memory;
  beforeAll(async () => {
    slow = await startMemory({ MEMORY_CHANGE_WAIT_MS: '0' });
  });
  afterAll(() => slow.stop());

  it('goes on after the answer 202, and the type shows how it ended', async () => {
    const caller = slow.organization();
    const { id } = await caller.type();
    await caller.object({ typeId: id, content: '{"price":7}' });
    const { outcome, memoryType } = await caller.changeType(id, { jsonSchema: STRICTER });
    expect([outcome, memoryType!.change]).toMatchObject(['ACCEPTED', { action: 'update', state: 'running', of: 1 }]);
    expect(await caller.endedChange(id)).toMatchObject({
      version: 2,
      state: 'active',
      change: { state: 'done', checked: 1 },
    });
    await caller.changeType(id, { jsonSchema: '{"required":["no"]}' });
    expect(await caller.endedChange(id)).toMatchObject({ version: 2, change: { state: 'failed', count: 1 } });
    expect((await caller.changeType(id, { jsonSchema: '{}', dryRun: true })).outcome).toBe('ACCEPTED');
    expect(await caller.endedChange(id)).toMatchObject({ version: 2, change: { action: 'dryRun', state: 'done' } });
  });
  it('so does a deletion', async () => {
    const caller = slow.organization();
    const { id } = await caller.type();
    await caller.object({ typeId: id });
    expect(await caller.cascadeType(id)).toMatchObject({ outcome: 'ACCEPTED', memoryType: { id, state: 'deleting' } });
    for (let gone = false; !gone;)
      gone = await caller.getType(id).then(
        () => false,
        () => true,
      );
    expect((await caller.listObjects()).total).toBe(0);
  });
});
