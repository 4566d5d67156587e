import { join } from 'node:path';
import {
  CreateMemoryObjectRequest,
  CreateMemoryTypeRequest,
  UpdateMemoryObjectRequest,
  UpdateMemoryTypeRequest,
} from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import type { OpenStore } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { deleteMemoryObject } from '../src/objects/delete-memory-object.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { TYPES } from '../src/types/store.ts';
import { updateMemoryType } from '../src/types/update-memory-type.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

/** A field that a recipe of CONTRIBUTING.md has added. */
interface Added {
  colour?: string;
}

describe('a field that is added to a record', () => {
  const folder = temporaryFolder();
  let opened: OpenStore;
  let deps: Deps;
  let context: CallContext;
  beforeAll(async () => {
    ({ deps, opened } = await openTestDeps(join(folder.path, 'memory.db'), 1));
  });
  beforeEach(() => {
    context = contextOf(serverToken(newId()));
  });
  afterAll(async () => {
    await deps.counterShards.close();
    await opened.close();
    folder.remove();
  });

  /** As if the RPCs set the field in the objects that they write. */
  const settingObjects = (colour: string): Deps => ({
    ...deps,
    groupedWrites: ({ writes, ...request }) =>
      deps.groupedWrites({
        ...request,
        writes: writes.map(({ after, ...write }) => ({ ...write, after: after && { ...after, colour } })),
      }),
  });
  /** As if the RPC set the field: in the type that it reads at first, and in no other one. */
  function settingType(colour: string): Deps {
    let isFirst = true;
    const byId: Deps['types']['byId'] = async (...given) => {
      const found = await deps.types.byId(...given);
      const read = found && isFirst ? { ...found, colour } : found;
      isFirst = false;
      return read;
    };
    return { ...deps, types: { ...deps.types, byId } };
  }
  const createType = async (given: Partial<CreateMemoryTypeRequest> = {}): Promise<string> => {
    const request = CreateMemoryTypeRequest.fromPartial({ type: `t${newId()}`, jsonSchema: '{}', ...given });
    return (await createMemoryType(deps, request, context)).memoryType!.id;
  };
  const post = async (using: Deps, given: Partial<CreateMemoryObjectRequest>): Promise<string> => {
    const request = CreateMemoryObjectRequest.fromPartial({ key: 'k', content: '{}', ...given });
    return (await createMemoryObject(using, request, context)).memoryObject!.id;
  };
  const patch = (using: Deps, pathId: string, content: string) =>
    updateMemoryObject(
      using,
      UpdateMemoryObjectRequest.fromPartial({ pathId, content, updateMask: ['content'] }),
      context,
    );
  const put = (using: Deps, pathId: string, given: Partial<UpdateMemoryTypeRequest>) => {
    const request = { pathId, ...given, updateMask: Object.keys(given) };
    return updateMemoryType(using, UpdateMemoryTypeRequest.fromPartial(request), context);
  };
  const objectOf = (id: string) =>
    opened.store.findOne(context.principal.organizationId, OBJECTS, { _id: id }) as Promise<
      ({ revision: number; content: string } & Added) | undefined
    >;
  const typeOf = (id: string) =>
    opened.store.findOne(context.principal.organizationId, TYPES, { _id: id }) as Promise<
      ({ version: number } & Added) | undefined
    >;

  it('of an object is written by POST, upsert and PATCH, and stays where nothing sets it', async () => {
    const typeId = await createType();
    const id = await post(settingObjects('posted'), { typeId });
    expect(await objectOf(id)).toMatchObject({ revision: 1, colour: 'posted' });
    await patch(settingObjects('patched'), id, '{"n":2}');
    expect(await objectOf(id)).toMatchObject({ revision: 2, colour: 'patched' });
    await post(settingObjects('upserted'), { typeId, upsert: true });
    expect(await objectOf(id)).toMatchObject({ revision: 3, colour: 'upserted' });
    await patch(deps, id, '{"n":4}');
    await post(deps, { typeId, upsert: true });
    await put(deps, typeId, { jsonSchema: '{"type":"object","properties":{"n":{"type":"number"}}}' });
    expect(await objectOf(id)).toMatchObject({ revision: 5, colour: 'upserted' });
    const upserted = await post(settingObjects('new'), { typeId, key: 'other', upsert: true });
    expect(await objectOf(upserted)).toMatchObject({ revision: 1, colour: 'new' });
  });

  it('of an object is written and kept when its target is deleted, and when its type gets or loses a relation', async () => {
    const target = await createType({ type: 'Target' });
    const relations = [
      { name: 'to', targetType: 'Target', path: '/to', cardinality: 'one', required: false, onDelete: 'setNull' },
    ];
    const source = await createType({ relations });
    const [one, two] = [
      await post(deps, { typeId: target, key: 'one' }),
      await post(deps, { typeId: target, key: 'two' }),
    ];
    const id = await post(settingObjects('posted'), { typeId: source, content: '{"to":"one"}' });
    await deleteMemoryObject(settingObjects('nulled'), { id: one, ifMatch: undefined }, context);
    expect(await objectOf(id)).toMatchObject({ content: '{"to":null}', colour: 'nulled' });
    await patch(deps, id, '{"to":"two"}');
    await deleteMemoryObject(deps, { id: two, ifMatch: undefined }, context);
    expect(await objectOf(id)).toMatchObject({ content: '{"to":null}', colour: 'nulled' });
    await post(deps, { typeId: target, key: 'three' });
    await patch(settingObjects('patched'), id, '{"to":"three"}');
    await put(deps, source, { relations: [] });
    await put(deps, source, { relations });
    expect(await objectOf(id)).toMatchObject({ content: '{"to":"three"}', references: 1, colour: 'patched' });
  });

  it('of a type is written by PUT, also when its objects are read for the change', async () => {
    const id = await createType();
    await put(settingType('put'), id, { description: 'changed' });
    expect(await typeOf(id)).toMatchObject({ version: 1, colour: 'put' });
    await post(deps, { typeId: id });
    await put(settingType('checked'), id, { jsonSchema: '{"type":"object","maxProperties":3}' });
    expect(await typeOf(id)).toMatchObject({ version: 2, state: 'active', colour: 'checked' });
    await put(deps, id, { jsonSchema: '{"type":"object","maxProperties":2}' });
    expect(await typeOf(id)).toMatchObject({ version: 3, state: 'active', colour: 'checked' });
  });
});
