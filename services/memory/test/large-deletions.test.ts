import { errorOf, startMemory, type Caller, type Memory } from './fixture.ts';
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
    });
    expect((await token.listObjects({ typeId: thing.id })).total).toBe(21);
    await token.cascadeToEnd(thing.id);
    await token.deleteObject(id);
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
      expect((await errorOf(token.deleteObject(id))).reason).toBe('OBJECT_IN_USE');
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
