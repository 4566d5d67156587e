import { newId } from 'platform/core/ids.ts';
import { errorOf, startMemory, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let theirs: Caller;
let mine: Caller;
let theirType: string;
let theirObject: string;
beforeAll(async () => {
  memory = await startMemory();
  [theirs, mine] = [memory.organization(), memory.organization()];
  theirType = (await theirs.type({ type: 'Ledger' })).id;
  theirObject = (await theirs.object({ typeId: theirType, key: 'k' })).id;
  await mine.object({ typeId: (await mine.type({ type: 'Own' })).id, key: 'own' });
});
afterAll(() => memory.stop());

const outcome = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (answer) => ({ answer }),
    () => errorOf(work),
  );

describe('an id of another organization gets exactly the answer that an unknown id gets', () => {
  const cases: Record<string, (id: { type: string; object: string }) => Promise<unknown>> = {
    getMemoryType: ({ type }) => mine.getType(type),
    updateMemoryType: ({ type }) => mine.putType(type, { displayName: 'x' }),
    'updateMemoryType with the id in the body': ({ type }) => mine.putType(type, { id: type, displayName: 'x' }),
    deleteMemoryType: ({ type }) => mine.deleteType(type),
    createMemoryObject: ({ type }) => mine.createObject({ typeId: type }),
    listMemoryObjects: ({ type }) => mine.listObjects({ typeId: type }),
    'listMemoryObjects by key': ({ type }) => mine.listObjects({ typeId: type, key: 'k' }),
    getMemoryObject: ({ object }) => mine.getObject(object),
    updateMemoryObject: ({ object }) => mine.patchObject(object, { content: '{"price":2}' }),
    deleteMemoryObject: ({ object }) => mine.deleteObject(object),
  };
  it.each(Object.entries(cases))('%s', async (_, call) => {
    const foreign = await outcome(call({ type: theirType, object: theirObject }));
    expect(foreign).toEqual(await outcome(call({ type: newId(), object: newId() })));
    expect(JSON.stringify(foreign)).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });
});

it('names, keys and lists find nothing of another organization', async () => {
  expect(await mine.listObjects({ type: 'Ledger' })).toEqual({ total: 0, items: [] });
  expect(await mine.listObjects({ key: 'k' })).toEqual({ total: 0, items: [] });
  expect((await errorOf(mine.createObject({ type: 'Ledger' }))).reason).toBe('NOT_FOUND');
  expect((await mine.listTypes()).map(({ type }) => type)).toEqual(['Own']);
  const { total, items } = await mine.listObjects();
  expect([total, items.map(({ key }) => key)]).toEqual([1, ['own']]);
});

it('none of the calls above changed the data of the other organization', async () => {
  expect(await theirs.getType(theirType)).toMatchObject({ displayName: 'Ledger', version: 1 });
  expect(await theirs.getObject(theirObject)).toMatchObject({ content: '{"price":1}', revision: 1 });
  expect((await theirs.listObjects()).total).toBe(1);
});
