import { join } from 'node:path';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { errorOf } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

// On the embedded store, whose reads never give way by themselves.
it('a deletion that only reads lets others have the thread, however many wait behind it', async () => {
  const folder = temporaryFolder();
  const { deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 1, openSqliteStore);
  const context = contextOf(serverToken(newId()));
  const typeOf = (type: string, relations: { name: string; targetType: string; path: string; cardinality: string }[]) =>
    createMemoryType(deps, CreateMemoryTypeRequest.fromPartial({ type, jsonSchema: '{}', relations }), context);
  const put = async (type: string, key: string, content: string) =>
    (await createMemoryObject(deps, CreateMemoryObjectRequest.fromPartial({ type, key, content }), context))
      .memoryObject!;
  await typeOf('Person', []);
  await typeOf('Thing', [{ name: 'owner', targetType: 'Person', path: '/owner', cardinality: 'one' }]);
  const { id } = await put('Person', 'ada', '{}');
  await put('Thing', 't', '{"owner":"ada"}');

  const order: string[] = [];
  const others = new Promise<void>((resolve) => {
    setImmediate(() => {
      order.push('others');
      resolve();
    });
  });
  const deletion = async (): Promise<void> => {
    expect((await errorOf(deleteMemoryObject(deps, { id, ifMatch: undefined }, context))).reason).toBe('OBJECT_IN_USE');
    order.push('deletion');
  };
  await Promise.all([deletion(), deletion(), others]);
  expect(order).toEqual(['others', 'deletion', 'deletion']);

  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});
