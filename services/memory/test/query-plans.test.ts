import { join } from 'node:path';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  ListMemoryObjectsRequest,
  ListMemoryTypesRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { explain, recordStatements } from '../../../test/support/query-plans.ts';
import { typeChangesJob } from '../src/jobs/type-changes.ts';
import { memoryBytesJob } from '../src/jobs/count-bytes.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { getMemoryObject } from '../src/objects/get-memory-object.ts';
import { listMemoryObjects } from '../src/objects/list-memory-objects.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import { getMemoryType } from '../src/types/get-memory-type.ts';
import { listMemoryTypes } from '../src/types/list-memory-types.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { userOf } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

it('every statement on a SQLite table goes by an index that has its order, and every index serves a statement', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'memory.db');
  const recorded = recordStatements();
  const { deps, opened } = await openTestDeps(file, 1, openSqliteStore);
  const organizationId = newId();
  const token = serverToken(organizationId, { limits: { memory_objects: 100, memory_bytes: 1_000_000 } });
  const createType = async (type: string, visibility: string): Promise<string> =>
    (
      await createMemoryType(
        deps,
        CreateMemoryTypeRequest.fromPartial({ type, visibility, jsonSchema: '{}' }),
        contextOf(token),
      )
    ).memoryType!.id;
  const pathId = await createType('item', 'organization');
  await createType('other', 'organization');
  await createType('hidden', 'private');
  for (const principal of [token, userOf(organizationId)]) {
    const context = () => contextOf(principal);
    const create = CreateMemoryObjectRequest.fromPartial({ type: 'item', key: newId(), content: '{}' });
    const { id } = (await createMemoryObject(deps, create, context())).memoryObject!;
    await getMemoryObject(deps, { id }, context());
    const change = UpdateMemoryObjectRequest.fromPartial({ pathId: id, content: '{"a":1}', updateMask: ['content'] });
    await updateMemoryObject(deps, change, context());
    const [typeId, type, key] = [pathId, 'item', 'k'];
    for (const filter of [{}, { typeId }, { type }, { typeId, type }, { key }, { typeId, key }, { type, key }])
      await listMemoryObjects(deps, ListMemoryObjectsRequest.fromPartial(filter), context());
    await getMemoryType(deps, { id: pathId }, context());
    for (const page of [{}, { page: 2 }])
      await listMemoryTypes(deps, ListMemoryTypesRequest.fromPartial(page), context());
    await deleteMemoryObject(deps, { id }, context());
  }
  const change = UpdateMemoryTypeRequest.fromPartial({ pathId, description: 'd', updateMask: ['description'] });
  await updateMemoryType(deps, change, contextOf(token));
  const relations = [{ name: 'item', targetType: 'item', path: '/item', cardinality: 'one' }];
  const pointing = CreateMemoryTypeRequest.fromPartial({ type: 'pointing', jsonSchema: '{}', relations });
  await createMemoryType(deps, pointing, contextOf(token));
  const objectOf = async (type: string, key: string, content: string): Promise<string> => {
    const create = CreateMemoryObjectRequest.fromPartial({ type, key, content });
    return (await createMemoryObject(deps, create, contextOf(token))).memoryObject!.id;
  };
  const target = await objectOf('item', 'target', '{}');
  const source = await objectOf('pointing', 'source', '{"item":"target"}');
  await expect(deleteMemoryObject(deps, { id: target, ifMatch: undefined }, contextOf(token))).rejects.toThrow();
  await deleteMemoryObject(deps, { id: source, ifMatch: undefined }, contextOf(token));
  await deleteMemoryObject(deps, { id: target, ifMatch: undefined }, contextOf(token));
  await deleteMemoryType(
    deps,
    { id: (await deps.types.byName(organizationId, 'pointing', {}))!._id, cascade: true, ifMatch: undefined },
    contextOf(token),
  );
  const dryRun = UpdateMemoryTypeRequest.fromPartial({ pathId, jsonSchema: '{}', updateMask: ['jsonSchema'] });
  await updateMemoryType(deps, { ...dryRun, dryRun: true }, contextOf(token));
  await typeChangesJob(deps).run(new AbortController().signal);
  await deleteMemoryType(deps, { id: pathId }, contextOf(token));
  await opened.migrate(new AbortController().signal);
  await memoryBytesJob(deps).run(new AbortController().signal);
  recorded.stop();
  const { costly, unusedIndexes } = explain(file, recorded.sql);
  // The first sort at most one object for each type that the principal sees; the other is the migration.
  const allowed = /"key" = \?\) AND \("organizationId"|"shape" < \?/;
  expect(costly.filter((sql) => !allowed.test(sql))).toEqual([]);
  expect(unusedIndexes).toEqual([]);
  await deps.counterShards.close();
  await opened.close();
  folder.remove();
});
