import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

// Reads of one turn are shared. Requests of two organizations are in one turn here, whatever the network does.
const folder = temporaryFolder();
let opened: OpenStore;
let deps: Deps;
beforeAll(async () => {
  ({ deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 4));
});
afterAll(async () => {
  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});

it.each<[string, (organizationId: string, typeId: string) => Promise<unknown>]>([
  ['a type by its id', (organizationId, typeId) => deps.types.byId(organizationId, typeId, {})],
  ['the header of a type', (organizationId, typeId) => deps.types.header(organizationId, typeId, {})],
  ['the headers of types', (organizationId, typeId) => deps.types.headers(organizationId, { _id: { in: [typeId] } })],
  ['the number of objects', (organizationId, typeId) => deps.fences.countObjects(organizationId, [typeId])],
])('%s is read for one organization, whoever else asks for the same in its turn', async (_, read) => {
  const [owner, other] = [newId(), newId()];
  const context = contextOf(serverToken(owner));
  const type = CreateMemoryTypeRequest.fromPartial({ type: 'Mine', jsonSchema: '{"type":"object"}' });
  const { id } = (await createMemoryType(deps, type, context)).memoryType!;
  await createMemoryObject(
    deps,
    CreateMemoryObjectRequest.fromPartial({ typeId: id, key: 'k', content: '{}' }),
    context,
  );
  const nothing = await read(other, id);
  const [mine, theirs] = await Promise.all([read(owner, id), read(other, id)]);
  expect(theirs).toEqual(nothing);
  expect(mine).not.toEqual(nothing);
});
