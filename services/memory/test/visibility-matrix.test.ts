import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import type { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { errorOf, executionOf, startMemory, userOf, type Caller, type Memory } from './fixture.ts';

let memory: Memory;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());

/** A type with one object, or names that nothing has. */
interface Probed {
  typeId: string;
  type: string;
  objectId: string;
  key: string;
  visibility: string;
  groupNames: string[];
}
/** What a caller is told, without what differs between any two ids and names. */
type Probe = (caller: Caller, probed: Probed) => Promise<unknown>;

const told = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => errorOf(Promise.reject(error as Error)),
  );
const listed = async (caller: Caller, given: Parameters<Caller['listObjects']>[0]): Promise<unknown> => {
  const { items, total, nextCursor } = await caller.listObjects({ pageSize: 1, ...given });
  return [items.length, total, nextCursor !== undefined];
};
const relationTo = ({ type, visibility, groupNames }: Probed) => ({
  ...{ visibility, groupNames },
  relations: [{ name: 'to', targetType: type, path: '/to', cardinality: 'one' }],
});

/**
 * By RPC, and within one in this order: requests that name a type or an object. `admins`: others get the same answer
 * whatever exists. Who may not see the type must be told the same as of names that nothing has.
 */
const PROBES: Record<keyof typeof MemoryServiceService, Record<string, Probe | { admins: Probe }>> = {
  createMemoryType: {
    'of the name': async (caller, { type }) => {
      try {
        const { id } = await caller.type({ type });
        await caller.deleteType(id);
        return 'no id';
      } catch (error) {
        return 'id' in (error as ServiceError).facts ? 'its id' : 'no id';
      }
    },
    'that refers to it': (caller, probed) => told(caller.createType(relationTo(probed))),
  },
  listMemoryTypes: {
    '': (caller) =>
      caller.listTypes().then(
        (types) => types.filter(({ relations }) => !relations[0]).length,
        () => 0,
      ),
  },
  getMemoryType: { '': (caller, { typeId }) => told(caller.getType(typeId)) },
  updateMemoryType: {
    '': (caller, { typeId }) => told(caller.putType(typeId, { description: 'x' })),
    '?dryRun': (caller, { typeId }) =>
      told(caller.changeType(typeId, { jsonSchema: '{"required":["x"]}', dryRun: true })),
    'that objects break': (caller, { typeId }) => told(caller.changeType(typeId, { jsonSchema: '{"required":["x"]}' })),
    '?force': { admins: (caller, { typeId }) => told(caller.changeType(typeId, { jsonSchema: '{}', force: true })) },
    'If-Match': (caller, { typeId }) => told(caller.changeType(typeId, { description: 'y', ifMatch: '"0"' })),
  },
  cancelMemoryTypeChange: { '': (caller, { typeId }) => told(caller.cancelChange(typeId)) },
  createMemoryObject: {
    '': (caller, { typeId }) => told(caller.createObject({ typeId })),
    'by name': (caller, { type }) => told(caller.createObject({ type })),
    'of the key': (caller, { type, key }) => told(caller.createObject({ type, key })),
    '?upsert': (caller, { typeId, key }) => told(caller.createObject({ typeId, key, upsert: true })),
    'that is wrong': (caller, { typeId }) => told(caller.createObject({ typeId, content: '{"price":""}' })),
  },
  listMemoryObjects: {
    '': (caller) => listed(caller, {}),
    'by type': (caller, { type }) => listed(caller, { type }),
    'by typeId': (caller, { typeId }) => listed(caller, { typeId }),
    'by key': (caller, { key }) => listed(caller, { key }),
    'by all': (caller, { typeId, type, key }) => listed(caller, { typeId, type, key }),
  },
  getMemoryObject: { '': (caller, { objectId }) => told(caller.getObject(objectId)) },
  updateMemoryObject: {
    '': (caller, { objectId }) => told(caller.patchObject(objectId, { content: '{"price":2}' })),
    'that is wrong': (caller, { objectId }) => told(caller.patchObject(objectId, { content: '{}' })),
    'If-Match': (caller, { objectId }) => told(caller.patchObject(objectId, { content: '{}', ifMatch: '"0"' })),
  },
  deleteMemoryObject: {
    'If-Match': (caller, { objectId }) => told(caller.deleteObject(objectId, '"0"')),
    '': (caller, { objectId }) => told(caller.deleteObject(objectId)),
  },
  deleteMemoryType: {
    'If-Match': (caller, { typeId }) => told(caller.deleteType(typeId, '"0"')),
    '': (caller, { typeId }) => told(caller.deleteType(typeId)),
    '?cascade': { admins: (caller, { typeId }) => told(caller.cascadeType(typeId)) },
  },
};
/** Of types: no agent execution may call them. */
const OF_TYPES = /MemoryType/;

const PRINCIPALS = {
  nobody: (id: string) => userOf(id),
  sales: (id: string) => userOf(id, { groups: ['sales'] }),
  other: (id: string) => userOf(id, { groups: ['Sales', 'sale', 'group:sales', 'organization'] }),
  securityAdmin: (id: string) => userOf(id, { roles: ['security_admin'] }),
  admin: (id: string) => userOf(id, { roles: ['admin'] }),
  token: (id: string) => serverToken(id),
  execution: (id: string, type: string) => executionOf(id, [type.toUpperCase()]),
  otherExecution: (id: string) => executionOf(id, ['Another']),
  stranger: () => serverToken(newId()),
};
type Name = keyof typeof PRINCIPALS;
const ALWAYS: Name[] = ['admin', 'token', 'execution'];
const USERS: Name[] = ['nobody', 'sales', 'other', 'securityAdmin'];

describe.each<[visibility: string, groupNames: string[], seenBy: Name[]]>([
  ['organization', [], [...ALWAYS, ...USERS]],
  ['organization', ['sales'], [...ALWAYS, ...USERS]],
  ['group', ['sales', 'support'], [...ALWAYS, 'sales']],
  ['group', [], ALWAYS],
  ['private', ['sales'], ALWAYS],
])('a type with visibility %s and groups %j', (visibility, groupNames, seenBy) => {
  it.each(Object.keys(PRINCIPALS) as Name[])('is to %s what it shall be, at every endpoint', async (name) => {
    const owner = memory.organization();
    const { organizationId } = owner.principal;
    const { id: typeId, type } = await owner.type({ visibility, groupNames });
    const { id: objectId, key } = await owner.object({ typeId });
    const before = [await owner.getType(typeId), await owner.getObject(objectId), (await owner.listObjects()).total];
    const probed: Probed = { typeId, type, objectId, key, visibility, groupNames };
    const nothing: Probed = { ...probed, typeId: newId(), type: `t${newId()}`, objectId: newId(), key: newId() };
    const caller = memory.as(PRINCIPALS[name](organizationId, type));
    // The name of a hidden type is taken all the same; its id is not told.
    const empty = memory.as({ ...caller.principal, organizationId: newId() });
    const isSeen = seenBy.includes(name);
    const isAdmin = name === 'admin' || name === 'token';
    const expected: [string, boolean][] = [];
    const found: [string, boolean][] = [];
    for (const [rpc, probes] of Object.entries(PROBES))
      for (const [what, probe] of Object.entries(probes)) {
        const isForAdmins = 'admins' in probe;
        const ask = isForAdmins ? probe.admins : probe;
        const isForbidden = (isForAdmins && !isAdmin) || (name.endsWith('xecution') && OF_TYPES.test(rpc));
        const unknown = await ask(empty, nothing);
        const isTold = JSON.stringify(await ask(caller, probed)) !== JSON.stringify(unknown);
        expected.push([`${rpc} ${what}`, isSeen && !isForbidden]);
        found.push([`${rpc} ${what}`, isTold]);
      }
    expect(found).toEqual(expected);
    if (isSeen) return;
    const after = [await owner.getType(typeId), await owner.getObject(objectId), (await owner.listObjects()).total];
    expect(after).toEqual(before);
  });
});
