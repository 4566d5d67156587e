import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import { reasonAndPathOf, startMemory, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
let token: Caller;
let typeId: string;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());
beforeEach(async () => {
  token = memory.organization();
  typeId = (await token.type({ type: 'Item' })).id;
});

const add = async (): Promise<string> => (await token.object({ typeId })).id;
async function addMany(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await add());
  return ids;
}

it('next leads through the whole list, and prev back again, newest first', async () => {
  const ids = (await addMany(7)).reverse();
  const first = await token.listObjects({ typeId, pageSize: 3 });
  const second = await token.listObjects({ typeId, pageSize: 3, cursor: first.nextCursor });
  const third = await token.listObjects({ typeId, pageSize: 3, cursor: second.nextCursor });
  const seen = [first, second, third].map(({ items }) => items.map(({ id }) => id));
  expect(seen).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)]);
  expect([first.prevCursor, third.nextCursor, third.total]).toEqual([undefined, undefined, 7]);
  const back = await token.listObjects({ typeId, pageSize: 3, cursor: third.prevCursor });
  expect(back.items).toEqual(second.items);
  const start = await token.listObjects({ typeId, pageSize: 3, cursor: back.prevCursor });
  expect([start.items, start.prevCursor]).toEqual([first.items, undefined]);
  expect(await token.listObjects({ typeId, pageSize: 3, cursor: start.nextCursor })).toEqual(second);
  const byNumber = await token.listObjects({ typeId, pageSize: 3, page: 2 });
  expect(byNumber.items).toEqual(second.items);
  expect((await token.listObjects({ typeId, pageSize: 3, cursor: byNumber.nextCursor })).items).toEqual(third.items);
  expect((await token.listObjects({ typeId, pageSize: 7 })).nextCursor).toBeUndefined();
});

it('following next neither repeats nor skips an object while others are created and deleted', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ created: fc.nat(2), deleted: fc.array(fc.nat(40), { maxLength: 2 }) }), { maxLength: 8 }),
      fc.integer({ min: 1, max: 4 }),
      async (turns, pageSize) => {
        const type = await token.type();
        const ids = await Promise.all(
          Array.from({ length: 12 }, async () => (await token.object({ typeId: type.id })).id),
        );
        const deleted = new Set<string>();
        const seen: string[] = [];
        let cursor: string | undefined;
        for (let turn = 0; ; turn++) {
          const page = await token.listObjects({ typeId: type.id, pageSize, ...(cursor !== undefined && { cursor }) });
          seen.push(...page.items.map(({ id }) => id));
          const { created = 0, deleted: places = [] } = turns[turn] ?? {};
          for (let n = 0; n < created; n++) await token.object({ typeId: type.id });
          for (const place of places) {
            const id = ids[place % ids.length]!;
            if (deleted.has(id)) continue;
            deleted.add(id);
            await token.deleteObject(id);
          }
          cursor = page.nextCursor;
          if (cursor === undefined) break;
        }
        expect(new Set(seen).size).toBe(seen.length);
        expect(ids.filter((id) => !deleted.has(id) && !seen.includes(id))).toEqual([]);
      },
    ),
    { numRuns: Number(process.env.PROPERTY_RUNS ?? 15) },
  );
});

describe('400', () => {
  it.each<[string, (cursor: string) => Parameters<Caller['listObjects']>[0]]>([
    ['of another filter', (cursor) => ({ cursor })],
    ['of another key', (cursor) => ({ typeId, key: 'k', cursor })],
    ['beside a page', (cursor) => ({ typeId, page: 1, cursor })],
    ['that was changed', (cursor) => ({ typeId, cursor: `${cursor}A` })],
    ['that is empty', () => ({ typeId, cursor: '' })],
    ['that is an id', () => ({ typeId, cursor: newId() })],
  ])('names a cursor %s', async (_, given) => {
    await addMany(2);
    const { nextCursor } = await token.listObjects({ typeId, pageSize: 1 });
    expect(await reasonAndPathOf(token.listObjects(given(nextCursor!)))).toEqual(['INVALID_REQUEST', '/cursor']);
  });
  it('names a cursor of another organization', async () => {
    const other = memory.organization();
    const { id } = await other.type({ type: 'Item' });
    await other.object({ typeId: id });
    await other.object({ typeId: id });
    const { nextCursor } = await other.listObjects({ type: 'Item', pageSize: 1 });
    expect(await reasonAndPathOf(token.listObjects({ type: 'Item', cursor: nextCursor }))).toEqual([
      'INVALID_REQUEST',
      '/cursor',
    ]);
    expect((await other.listObjects({ type: 'item', cursor: nextCursor })).items).toHaveLength(1);
  });
});
