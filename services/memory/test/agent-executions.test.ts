import { newId } from 'platform/core/ids.ts';
import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import { serverToken } from 'platform/service/testing.ts';
import { errorOf, executionOf, startMemory, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let organizationId: string;
let token: Caller;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(() => {
  organizationId = newId();
  token = memory.as(serverToken(organizationId));
});
const execution = (memoryTypes: string[], limits = {}): Caller =>
  memory.as(executionOf(organizationId, memoryTypes, { limits }));

const reasonOf = async (work: Promise<unknown>): Promise<string> => (await errorOf(work)).reason;

/** Two types, the second of which refers to the first. */
async function noteAndRemark(onDelete: string) {
  const note = await token.type({ type: 'Note' });
  const remark = await token.type({
    type: 'Remark',
    jsonSchema: JSON.stringify({ type: 'object', properties: { note: { type: ['string', 'null'] } } }),
    relations: [{ name: 'note', targetType: 'Note', path: '/note', cardinality: 'one', onDelete }],
  });
  const { id: noteId } = await token.object({ typeId: note.id, key: 'n' });
  const { id: remarkId } = await token.object({ typeId: remark.id, key: 'r', content: '{"note":"n"}' });
  return { note, remark, noteId, remarkId };
}

it('a service checks the scope of a server token, too', async () => {
  const reader = memory.as(serverToken(organizationId, { scopes: ['memory:read'] }));
  await token.type({ type: 'Note' });
  expect((await reader.listTypes()).map(({ type }) => type)).toEqual(['Note']);
  expect(await reasonOf(reader.type())).toBe('FORBIDDEN');
});

describe('an agent execution', () => {
  it('keeps objects of the types that its definition lists, whatever their case and whoever else sees them', async () => {
    await token.type({ type: 'Note', visibility: 'private' });
    const run = execution(['note']);
    const { id } = await run.object({ type: 'NOTE', key: 'one' });
    await run.patchObject(id, { content: '{"price":2}' });
    expect((await run.getObject(id)).content).toBe('{"price":2}');
    expect((await run.listObjects({ type: 'note' })).total).toBe(1);
    expect(await run.deleteObject(id)).toEqual({ success: true, id });
  });

  it('finds nothing of a type that its definition does not list', async () => {
    const { noteId, remarkId, remark } = await noteAndRemark('restrict');
    const run = execution(['Note']);
    expect((await run.listObjects()).items.map(({ id }) => id)).toEqual([noteId]);
    expect((await run.listObjects()).total).toBe(1);
    for (const filter of [{ type: 'Remark' }, { typeId: remark.id }, { type: 'Note', typeId: remark.id }])
      expect(await run.listObjects(filter)).toMatchObject({ total: 0, items: [] });
    expect(await reasonOf(run.getObject(remarkId))).toBe('NOT_FOUND');
    expect(await reasonOf(run.patchObject(remarkId, { content: '{}' }))).toBe('NOT_FOUND');
    expect(await reasonOf(run.deleteObject(remarkId))).toBe('NOT_FOUND');
    expect(await reasonOf(run.createObject({ type: 'Remark', content: '{}' }))).toBe('NOT_FOUND');
    expect(await reasonOf(run.createObject({ typeId: remark.id, content: '{}' }))).toBe('NOT_FOUND');
    expect(await reasonOf(execution([]).getObject(noteId))).toBe('NOT_FOUND');
    expect((await execution([]).listObjects()).total).toBe(0);
  });

  it.each(['cascade', 'setNull'])(
    'deletes nothing whose deletion would reach a type that is not listed (%s)',
    async (onDelete) => {
      const { noteId, remarkId } = await noteAndRemark(onDelete);
      const error = await errorOf(execution(['Note']).deleteObject(noteId));
      expect(error).toMatchObject({ reason: 'OBJECT_IN_USE', facts: { examples: [] } });
      expect((await token.getObject(remarkId)).content).toBe('{"note":"n"}');
      expect((await execution(['Note', 'Remark']).deleteObject(noteId)).success).toBe(true);
    },
  );

  it("is bound by the limits of its organization's tier", async () => {
    await token.type({ type: 'Note' });
    const run = execution(['Note'], { memory_objects: 1 });
    await run.object({ type: 'Note' });
    expect(await reasonOf(run.createObject({ type: 'Note' }))).toBe('TIER_LIMIT');
  });

  it('has nothing of another organization', async () => {
    const { noteId } = await noteAndRemark('restrict');
    const foreign = memory.as(executionOf(newId(), ['Note', 'Remark']));
    expect(await reasonOf(foreign.getObject(noteId))).toBe('NOT_FOUND');
    expect((await foreign.listObjects()).total).toBe(0);
  });

  it('is believed only of the gateway and of agents, and reaches no memory types', async () => {
    const principal = executionOf(organizationId, ['Note']);
    const get = (caller: string) =>
      memory.running
        .client(MemoryServiceService, caller)
        .getMemoryObject({ id: newId() }, memory.running.as(principal));
    expect(await reasonOf(get('credits'))).toBe('UNAUTHENTICATED');
    expect(await reasonOf(get('gateway'))).toBe('NOT_FOUND');
    const run = memory.as(principal);
    expect(await reasonOf(run.listTypes())).toBe('FORBIDDEN');
    expect(await reasonOf(run.createType())).toBe('FORBIDDEN');
  });
});
