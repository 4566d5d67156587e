import { join } from 'node:path';
import { CreateMemoryTypeRequest, UpdateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { deleteMemoryType } from '../src/types/delete-memory-type.ts';
import type { MemoryTypes } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { errorOf } from './fixture.ts';
import { jsonSchema, relation } from './relation-fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

/** As many requests of one token as the gateway lets through at once, about. */
const AT_ONCE = 120;

const folder = temporaryFolder();
const context = contextOf(serverToken(newId()));
let close: () => Promise<void>;
let deps: Deps;
/** Batches that lost against another one of this process. */
let lost = 0;

beforeAll(async () => {
  const opened = await openTestDeps(join(folder.path, 'memory.db'), 1);
  const counted = <A extends unknown[]>(write: (...args: A) => Promise<void>) => {
    return (...args: A): Promise<void> =>
      write(...args).catch((error: unknown) => {
        lost += 1;
        throw error;
      });
  };
  const { create, change, remove } = opened.deps.types;
  const types: MemoryTypes = {
    ...opened.deps.types,
    ...{ create: counted(create), change: counted(change), remove: counted(remove) },
  };
  deps = { ...opened.deps, types };
  close = async () => {
    await deps.counterShards.close();
    await opened.opened.close();
    folder.remove();
  };
});
afterAll(() => close());

const createType = (given: Parameters<typeof CreateMemoryTypeRequest.fromPartial>[0]): Promise<string> =>
  createMemoryType(deps, CreateMemoryTypeRequest.fromPartial({ jsonSchema, ...given }), context).then(
    ({ memoryType }) => memoryType!.id,
  );
const put = (pathId: string, body: Parameters<typeof UpdateMemoryTypeRequest.fromPartial>[0]): Promise<unknown> =>
  updateMemoryType(
    deps,
    UpdateMemoryTypeRequest.fromPartial({ pathId, updateMask: Object.keys(body), ...body }),
    context,
  );
const deleteType = (id: string): Promise<unknown> =>
  deleteMemoryType(deps, { id, ifMatch: undefined, cascade: undefined }, context);

it('types that begin, change and end to point at one target at once do so in turn, and none loses its batch', async () => {
  const target = await createType({ type: 'Target' });
  const names = Array.from({ length: AT_ONCE }, (_, index) => `source${index}`);
  const ids = await Promise.all(names.map((type) => createType({ type })));
  const relations = [relation('target')];
  lost = 0;

  await Promise.all(ids.map((id) => put(id, { relations })));
  await Promise.all(ids.map((id) => put(id, { visibility: 'group', groupNames: ['staff'] })));
  expect((await errorOf(deleteType(target))).reason).toBe('TYPE_IN_USE');
  await Promise.all(
    ids.map((id, index) => {
      if (index % 3 === 0) return deleteType(id);
      return index % 3 === 1 ? put(id, { relations: [] }) : createType({ type: `more${index}`, relations });
    }),
  );
  expect(lost).toBe(0);

  for (const [index, id] of ids.entries()) if (index % 3 === 2) await deleteType(id);
  const last = await Promise.all(
    names.map((_, index) => deps.types.byName(context.principal.organizationId, `more${index}`, {})),
  );
  for (const type of last) if (type) await deleteType(type._id);
  expect(await deleteType(target)).toMatchObject({ outcome: 'DONE' });
});
