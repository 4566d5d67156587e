import { errorOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';
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
const { typesWith, put, isGone } = relationFixture(() => token);

// On the embedded engine alone: servers take minutes to make so many objects.
describe('the deletion of a target of many objects', () => {
  it('is refused when one batch would have to remove too many references', async () => {
    const person = await token.type({ type: 'Person', jsonSchema });
    const thing = await token.type({
      jsonSchema,
      relations: [
        relation('Person', { onDelete: 'cascade' }),
        relation('Person', { name: 'friends', path: '/friends', cardinality: 'many' }),
      ],
    });
    const { id } = await put(person.id, 'ada', {});
    const friends = Array.from({ length: 99 }, (_, n) => `p${n}`);
    for (const key of friends) await put(person.id, key, {});
    for (let n = 0; n < 21; n++) await put(thing.id, `t${n}`, { owner: 'ada', friends });
    expect(await errorOf(token.deleteObject(id))).toMatchObject({
      reason: 'OBJECT_IN_USE',
      message: expect.stringContaining('2000 references'),
      facts: { count: 21, examples: expect.arrayContaining([{ id: expect.any(String), type: thing.type, key: 't0' }]) },
    });
    expect((await token.listObjects({ typeId: thing.id })).total).toBe(21);
    await token.cascadeToEnd(thing.id);
    await token.deleteObject(id);
  });
  it('is refused when the contents that it changes are too large for one batch', async () => {
    const { person, thing } = await typesWith({ onDelete: 'setNull' });
    const { id } = await put(person.id, 'ada', {});
    const text = 'x'.repeat(250_000);
    for (let n = 0; n < 34; n++) await put(thing.id, `t${n}`, { owner: 'ada', text });
    expect(await errorOf(token.deleteObject(id))).toMatchObject({
      reason: 'OBJECT_IN_USE',
      message: expect.stringContaining('8388608 bytes'),
      facts: { count: 34, examples: expect.arrayContaining([{ id: expect.any(String), type: 'Thing', key: 't0' }]) },
    });
    expect(await isGone(id)).toBe(false);
  });
  it('says nothing of objects that the user may not see', async () => {
    const person = await token.type({ type: 'Person', jsonSchema });
    const relations = [relation('Person', { onDelete: 'setNull' })];
    const hidden = await token.type({ type: 'Hidden', visibility: 'private', jsonSchema, relations });
    const shown = await token.type({ type: 'Shown', jsonSchema, relations });
    const { id } = await put(person.id, 'ada', {});
    const text = 'x'.repeat(250_000);
    for (let n = 0; n < 33; n++) await put(hidden.id, `t${n}`, { owner: 'ada', text });
    const seen = await put(shown.id, 's', { owner: 'ada', text });
    const user = memory.as(userOf(token.principal.organizationId));
    const facts = async () => (await errorOf(user.deleteObject(id))).facts;
    expect(await facts()).toEqual({ count: 1, examples: [{ id: seen.id, type: 'Shown', key: 's' }] });
    await token.deleteObject(seen.id);
    await put(hidden.id, 't33', { owner: 'ada', text });
    expect(await facts()).toEqual({ examples: [] });
  });
  describe('with more references than one batch holds', () => {
    /** As many things that belong to `ada`. */
    const MANY = 1_100;
    async function crowd(typeId: string): Promise<string[]> {
      const keys = Array.from({ length: MANY }, (_, n) => `t${n}`);
      const ids: string[] = [];
      while (keys.length > 0)
        ids.push(
          ...(await Promise.all(keys.splice(0, 100).map((key) => put(typeId, key, { owner: 'ada' })))).map(
            ({ id }) => id,
          ),
        );
      return ids;
    }
    it.each(['setNull', 'cascade', 'restrict'])('is refused (%s), and no object loses its target', async (onDelete) => {
      const { person, thing } = await typesWith({ onDelete });
      const { id } = await put(person.id, 'ada', {});
      const things = await crowd(thing.id);
      const { reason, facts } = await errorOf(token.deleteObject(id));
      const { count, examples } = facts as { count: number; examples: { id: string; type: string; key: string }[] };
      // of the references one more is read than one batch may hold
      expect([reason, count, examples.length]).toEqual(['OBJECT_IN_USE', 1_001, 10]);
      for (const { id, type, key } of examples) expect([type, things[Number(key.slice(1))]]).toEqual(['Thing', id]);
      expect(await isGone(id)).toBe(false);
      await token.patchObject(things.at(-1)!, { content: '{}' });
      await token.deleteObject(things.at(-2)!);
    });
    it('removes those of a relation that is gone, and every object can be written afterwards', async () => {
      const { person, thing } = await typesWith();
      const { id } = await put(person.id, 'ada', {});
      const things = await crowd(thing.id);
      await token.putType(thing.id, { relations: [], updateMask: ['relations'] });
      await token.deleteObject(id);
      expect(await isGone(id)).toBe(true);
      for (const one of [things[0]!, things.at(-1)!]) await token.patchObject(one, { content: '{}' });
      await token.cascadeToEnd(thing.id);
    });
    it('is made with the whole type', async () => {
      const node = await token.type({ type: 'Node', jsonSchema, relations: [relation('Node')] });
      await put(node.id, 'ada', {});
      await crowd(node.id);
      await token.cascadeToEnd(node.id);
      expect((await token.listObjects()).total).toBe(0);
    });
  });
});
