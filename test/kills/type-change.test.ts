import { auditTrailOf, objectsOf } from '../support/organization-records.ts';
import { relay } from '../support/nothing-lost.ts';
import { retryWhileUnavailable } from '../support/retry-while-unavailable.ts';
import { SHORT_LEASES } from '../support/load-settings.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expectBytesCounted } from '../support/stored-bytes.ts';
import type { Tenant } from '../support/tenant.ts';
import { eventually } from 'platform/service/test-end.ts';

/** The work may end before the kill: then again with twice as many objects. */
const ATTEMPTS = 4;
const OBJECTS = 200;
const CLIENTS = 16;
const LONG_MS = 600_000;
/** Checking that they are different takes long enough to be killed. */
const NUMBERS = Array.from({ length: 1_500 }, (_, n) => `number ${n}`);
const SCHEMA = { type: 'object', properties: { numbers: { type: 'array' } } };

describe('kill -9 of memory while it reads all objects of a type', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ env: { ...SHORT_LEASES, MEMORY_CHANGE_WAIT_MS: '0' }, replicas: 1 });
  });
  afterAll(() => stack.stop());

  it(
    'a change of the schema goes on after the restart, takes place once, and every object satisfies it',
    async () => {
      const { tenant, typeId, objects } = await killDuring((tenant, path) =>
        tenant.request('PUT', path, {
          jsonSchema: { ...SCHEMA, properties: { numbers: { type: 'array', uniqueItems: true } } },
        }),
      );
      const path = `/api/memory/types/${typeId}`;
      const type = await eventually(async () => {
        await goOn();
        const { body } = await tenant.request('GET', path);
        return body.change.state !== 'running' && body;
      });
      expect(type).toMatchObject({
        version: 2,
        state: 'active',
        change: { state: 'done', checked: objects, count: 0 },
      });
      expect((await objectsOf(stack, tenant, typeId)).items).toHaveLength(objects);
      const twice = { type: type.type, key: 'twice', content: { numbers: ['1', '1'] } };
      expect((await tenant.request('POST', '/api/memory/objects', twice)).status).toBe(400);
      await relay(stack);
      expect(await actionsOn(tenant, typeId)).toEqual(['memory_type.create', 'memory_type.update']);
      await expectBytesCounted(stack, tenant);
    },
    LONG_MS,
  );

  it(
    'a deletion with all objects goes on after the restart, deletes each object once, and leaves nothing',
    async () => {
      const { tenant, typeId, objects } = await killDuring(async (tenant, path) => {
        // an object of another type stays
        await typeWithObjects(tenant, 'other', 1);
        return tenant.request('DELETE', `${path}?cascade=true`);
      });
      await eventually(async () => {
        await goOn();
        return (await tenant.request('GET', `/api/memory/types/${typeId}`)).status === 404;
      });
      const { body: list } = await tenant.request('GET', '/api/memory/objects');
      expect([list.total, list.items.map((item: { type: string }) => item.type)]).toEqual([1, ['other']]);
      await relay(stack);
      expect(await actionsOn(tenant, typeId)).toEqual(['memory_type.create', 'memory_type.delete']);
      const deleted = await auditTrailOf(stack, tenant, 'memory_object.delete');
      expect([deleted.length, new Set(deleted.map(({ targetId }) => targetId)).size]).toEqual([objects, objects]);
      await expectBytesCounted(stack, tenant);
    },
    LONG_MS,
  );

  /** Kills memory while it does the work that was answered 202; each attempt has an organization of its own. */
  async function killDuring(
    begin: (tenant: Tenant, path: string) => ReturnType<Tenant['request']>,
  ): Promise<{ tenant: Tenant; typeId: string; objects: number }> {
    for (let attempt = 1; ; attempt++) {
      const tenant = await stack.tenant();
      const objects = OBJECTS * 2 ** (attempt - 1);
      const typeId = await typeWithObjects(tenant, 'killed', objects);
      const { status } = await begin(tenant, `/api/memory/types/${typeId}`);
      await stack.killAndAwait('memory');
      // nobody goes on with it before the lease of the dead process has ended
      const { body } = await tenant.request('GET', `/api/memory/types/${typeId}`);
      if (status === 202 && body.change?.state === 'running') return { tenant, typeId, objects };
      if (attempt === ATTEMPTS) throw new Error(`the work on ${objects} objects ended before the kill: ${status}`);
    }
  }

  const goOn = (): Promise<unknown> =>
    retryWhileUnavailable(() => stack.runJob('memory', 'type-changes'), ['UNAVAILABLE', 'OUTCOME_UNKNOWN']);

  /** In their order. */
  const actionsOn = async (tenant: Tenant, targetId: string): Promise<string[]> =>
    (await auditTrailOf(stack, tenant))
      .filter((entry) => entry.targetId === targetId)
      .map(({ action }) => action)
      .sort();
});

/** @returns the id of the type */
async function typeWithObjects(tenant: Tenant, type: string, count: number): Promise<string> {
  const created = await tenant.request('POST', '/api/memory/types', { type, jsonSchema: SCHEMA });
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < count) {
      const body = { type, key: String(next++), content: { numbers: NUMBERS } };
      const { status, text } = await tenant.request('POST', '/api/memory/objects', body);
      if (status !== 201) throw new Error(`${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return created.body.id;
}
