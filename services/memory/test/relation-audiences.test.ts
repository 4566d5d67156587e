import { join } from 'node:path';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest, UpdateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { keyedMutex } from 'platform/core/keyed-mutex.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { reasonAndPathOf } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

// Everybody who sees a type must see the target types of its relations, whatever both are changed to at once.
const folder = temporaryFolder();
let opened: OpenStore;
let deps: Deps;
let context: CallContext;
beforeAll(async () => {
  ({ deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 4));
});
afterAll(async () => {
  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});
beforeEach(() => {
  context = contextOf(serverToken(newId()));
});

const create = async (given: Parameters<typeof CreateMemoryTypeRequest.fromPartial>[0]): Promise<string> =>
  (await createMemoryType(deps, CreateMemoryTypeRequest.fromPartial({ jsonSchema: '{}', ...given }), context))
    .memoryType!.id;
const put = (pathId: string, body: Partial<UpdateMemoryTypeRequest>, using = deps) =>
  updateMemoryType(
    using,
    UpdateMemoryTypeRequest.fromPartial({ ...body, pathId, updateMask: Object.keys(body) }),
    context,
  );
/** A target that all see, and a type that nobody sees with a relation to it. */
async function targetAndSource() {
  const target = await create({ type: 'Person' });
  const relations = [{ name: 'owner', targetType: 'Person', path: '/owner', cardinality: 'one' }];
  return { target, source: await create({ type: 'Thing', visibility: 'private', relations }) };
}
const REFUSED = ['INVALID_REQUEST', '/visibility'];

/** Dependencies of another replica, which wait before the first call of a method, until `release` is called. */
function held<K extends 'types' | 'objects'>(noun: K, method: keyof Deps[K]) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const call = deps[noun][method] as (...args: unknown[]) => Promise<unknown>;
  const holding = async (...args: unknown[]): Promise<unknown> => {
    reached.resolve();
    await released.promise;
    return call(...args);
  };
  const using: Deps = { ...deps, mutex: keyedMutex(), [noun]: { ...deps[noun], [method]: holding } };
  return { using, reached: reached.promise, release: () => released.resolve() };
}

it('a target does not become hidden when a type that refers to it has just become visible', async () => {
  const { target, source } = await targetAndSource();
  const late = held('types', 'change');
  const hiding = put(target, { visibility: 'private' }, late.using);
  await late.reached;
  await put(source, { visibility: 'organization' });
  late.release();
  expect(await reasonAndPathOf(hiding)).toEqual(REFUSED);
});

it('a type does not become visible when a target of its relations has just become hidden', async () => {
  const { target, source } = await targetAndSource();
  const late = held('types', 'change');
  const showing = put(source, { visibility: 'organization' }, late.using);
  await late.reached;
  await put(target, { visibility: 'private' });
  late.release();
  expect(await reasonAndPathOf(showing)).toEqual(REFUSED);
});

it('a target does not become hidden while the objects of a type that is to be visible are read', async () => {
  const { target, source } = await targetAndSource();
  const object = CreateMemoryObjectRequest.fromPartial({ typeId: source, key: 'k', content: '{}' });
  await createMemoryObject(deps, object, context);
  const change = held('objects', 'ofType');
  const showing = put(source, { visibility: 'organization', jsonSchema: '{"maxProperties":9}' }, change.using);
  await change.reached;
  expect(await reasonAndPathOf(put(target, { visibility: 'private' }))).toEqual(REFUSED);
  change.release();
  expect(await showing).toMatchObject({ outcome: 'DONE', memoryType: { visibility: 'organization' } });
});
