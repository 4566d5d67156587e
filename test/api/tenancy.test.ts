import { createResources, maskIdsAndTimes, unusedNames, type TenantResources } from '../support/tenant-resources.ts';
import { ROUTES } from '../support/routes.ts';
import type { Reply } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

interface Probe {
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

const run = (agentName: string, key?: string): Probe => ({
  path: '/api/agent/run',
  body: { agentName, args: {} },
  headers: key === undefined ? {} : { 'Idempotency-Key': key },
});
const at = (path: string, body?: unknown): Probe => ({ path, body });
const TYPES = '/api/memory/types';
const OBJECTS = '/api/memory/objects';
const EXECUTIONS = '/api/agent/executions';

/**
 * Requests that name resources of another organization, by route; `mine` are the resources of the requesting one.
 * The first probe must get another reply when the owner sends it.
 */
const PROBES: Record<string, (theirs: TenantResources, mine: TenantResources) => Probe[]> = {
  'GET /api/auth/whoami': () => [],
  'GET /api/agent/run': () => [],
  'POST /api/agent/run': ({ agent, idempotencyKey }, mine) => [
    run(agent),
    run(agent, idempotencyKey),
    run(mine.agent, idempotencyKey),
  ],
  'GET /api/agent/executions': ({ agent, executionId }) => [
    at(`${EXECUTIONS}?agent=${agent}`),
    at(`${EXECUTIONS}?agent=${agent}&status=succeeded`),
    at(`${EXECUTIONS}?cursor=${Buffer.from(executionId).toString('base64url')}`),
  ],
  'GET /api/agent/executions/{id}': ({ executionId, objectId, typeId }) =>
    [executionId, objectId, typeId].map((id) => at(`${EXECUTIONS}/${id}`)),
  'DELETE /api/agent/executions/{id}': ({ executionId }) => [at(`${EXECUTIONS}/${executionId}`)],
  'POST /api/memory/types': ({ type }) => [at(TYPES, { type, jsonSchema: {} })],
  'GET /api/memory/types': () => [],
  'GET /api/memory/types/{id}': ({ typeId, objectId }) => [
    at(`${TYPES}/${typeId}`),
    at(`${TYPES}/${typeId.toUpperCase()}`),
    at(`${TYPES}/${objectId}`),
  ],
  'PUT /api/memory/types/{path_id}': ({ typeId, type }, mine) => [
    at(`${TYPES}/${typeId}`, { description: 'x' }),
    at(`${TYPES}/${typeId}`, { id: typeId, jsonSchema: { type: 'string' } }),
    at(`${TYPES}/${typeId}?dryRun=true`, { jsonSchema: {} }),
    at(`${TYPES}/${typeId}?force=true`, { jsonSchema: {} }),
    at(`${TYPES}/${typeId}`, { type: mine.type }),
    at(`${TYPES}/${mine.typeId}`, { id: typeId, description: 'x' }),
    at(`${TYPES}/${mine.typeId}`, { type }),
  ],
  'DELETE /api/memory/types/{id}': ({ typeId }) => [at(`${TYPES}/${typeId}`), at(`${TYPES}/${typeId}?cascade=true`)],
  'DELETE /api/memory/types/{id}/change': ({ typeId }) => [at(`${TYPES}/${typeId}/change`)],
  'POST /api/memory/objects': ({ typeId, type, key }, mine) => [
    at(OBJECTS, { typeId, key, content: {} }),
    at(OBJECTS, { type, key, content: {} }),
    at(OBJECTS, { typeId, type, key: mine.key, content: {} }),
    at(OBJECTS, { typeId: mine.typeId, type, key, content: {} }),
    at(OBJECTS, { typeId: mine.typeId, key, content: {} }),
  ],
  'GET /api/memory/objects': ({ typeId, type, key }, mine) =>
    [
      `typeId=${typeId}`,
      `type=${type}`,
      `key=${key}`,
      `typeId=${typeId}&key=${mine.key}`,
      `type=${type}&typeId=${mine.typeId}`,
    ].map((query) => at(`${OBJECTS}?${query}`)),
  'GET /api/memory/objects/{id}': ({ objectId, typeId }) => [at(`${OBJECTS}/${objectId}`), at(`${OBJECTS}/${typeId}`)],
  'PATCH /api/memory/objects/{path_id}': ({ objectId, typeId, type, key }, mine) => [
    at(`${OBJECTS}/${objectId}`, { content: {} }),
    at(`${OBJECTS}/${objectId}`, { id: objectId, typeId, type, key, content: {} }),
    ...[{ id: objectId }, { typeId }, { type }, { key }].map((member) =>
      at(`${OBJECTS}/${mine.objectId}`, { ...member, content: {} }),
    ),
  ],
  'DELETE /api/memory/objects/{id}': ({ objectId }) => [at(`${OBJECTS}/${objectId}`)],
};

let stack: RunningStack;
let stranger: Tenant;
let owner: Tenant;
let mine: TenantResources;
beforeAll(async () => {
  stack = await sharedStack();
  [stranger, owner] = await Promise.all([stack.tenant({ credits: 100 }), stack.tenant({ credits: 100 })]);
  mine = await createResources(stack, stranger);
});

const send = (tenant: Tenant, verb: string, { path, body, headers }: Probe) =>
  tenant.request(verb, path, body, headers);

const VARYING = /^(date|x-request-id|etag|ratelimit.*)$/;
/**
 * A reply without what differs between equal ones: request id, Date, ETag, rate headers, the gateway's address, and in
 * a successful reply also ids, times and names.
 */
function comparable({ origin, status, headers, text, body }: Reply) {
  const rest = [...headers]
    .filter(([name]) => !VARYING.test(name))
    .map(([name, value]) => `${name}: ${maskIdsAndTimes(value).replaceAll(origin, '<gateway>')}`);
  return {
    status,
    headers: rest,
    text: status < 400 ? maskIdsAndTimes(text) : text.replace(body.requestId, '<request id>'),
  };
}

describe('another organization', () => {
  it('has probes for every route of the contract', () => {
    expect(Object.keys(PROBES).sort()).toEqual(ROUTES.map(({ name }) => name).sort());
  });

  it.each(ROUTES)(
    'gets the same reply for an existing resource as for one that does not exist: $name',
    async ({ name, verb }) => {
      const probesOf = PROBES[name] ?? (() => []);
      const [theirs, none] = [await createResources(stack, owner), unusedNames()];
      const [foreign, random] = [probesOf(theirs, mine), probesOf(none, mine)];
      for (const [index, probe] of foreign.entries()) {
        const replies = [await send(stranger, verb, probe), await send(stranger, verb, random[index]!)] as const;
        expect({ probe: index, ...comparable(replies[0]) }).toEqual({ probe: index, ...comparable(replies[1]) });
        const [{ status, text }] = replies;
        if (status >= 400) expect(Object.values(theirs).filter((value) => text.includes(value))).toEqual([]);
      }
      await expectUntouched(theirs);
      // the probes name real resources: the owner gets another reply
      if (foreign.length > 0)
        expect(comparable(await send(owner, verb, foreign[0]!))).not.toEqual(
          comparable(await send(stranger, verb, probesOf(unusedNames(), mine)[0]!)),
        );
    },
  );

  async function expectUntouched({ typeId, type, objectId, key, executionId, agent }: TenantResources): Promise<void> {
    const replies = await Promise.all(
      [`${TYPES}/${typeId}`, `${OBJECTS}/${objectId}`, `${EXECUTIONS}/${executionId}`].map((path) =>
        owner.request('GET', path),
      ),
    );
    expect(replies.map(({ body }) => body)).toMatchObject([
      { type, version: 1, description: '', jsonSchema: {} },
      { key, type, content: { a: 1 }, revision: 1 },
      { agent, status: 'succeeded' },
    ]);
    expect((await owner.request('GET', `${EXECUTIONS}?agent=${agent}`)).body.items).toHaveLength(1);
  }
});

describe('lists', () => {
  it.each(
    ROUTES.filter(({ verb, template }) => verb === 'GET' && !template.includes('{') && template !== '/api/auth/whoami'),
  )("show the organization's own resources and never another's: $name", async ({ path }) => {
    const theirs = await createResources(stack, owner);
    const [ownersReply, strangersReply] = [await owner.request('GET', path), await stranger.request('GET', path)];
    const shown = ({ text }: Reply, resources: TenantResources) =>
      Object.values(resources).filter((value) => text.includes(value));
    expect([shown(ownersReply, theirs).length > 0, shown(strangersReply, theirs)]).toEqual([true, []]);
    expect([shown(strangersReply, mine).length > 0, shown(ownersReply, mine)]).toEqual([true, []]);
  });

  it('count only the resources of the organization', async () => {
    const fresh = await stack.tenant();
    await fresh.request('POST', TYPES, { type: 'T', jsonSchema: {} });
    await fresh.request('POST', OBJECTS, { type: 'T', key: 'k', content: {} });
    expect((await fresh.request('GET', `${OBJECTS}?pageSize=1`)).body.total).toBe(1);
  });
});

describe('names', () => {
  it('of types, keys and agents can be the same in several organizations', async () => {
    const theirs = await createResources(stack, owner);
    const { body: type } = await stranger.request('POST', TYPES, { type: theirs.type, jsonSchema: {} });
    const { status } = await stranger.request('POST', OBJECTS, {
      type: theirs.type,
      key: theirs.key,
      content: { mine: true },
    });
    expect([type.id === theirs.typeId, status]).toEqual([false, 201]);
    const found = (await stranger.request('GET', `${OBJECTS}?type=${theirs.type}&key=${theirs.key}`)).body;
    expect([found.total, found.items[0].content]).toEqual([1, { mine: true }]);
  });

  it('an idempotency key of one organization means nothing in another', async () => {
    const theirs = await createResources(stack, owner);
    const runAgent = (tenant: Tenant, agent: string, args: unknown) =>
      tenant.request(
        'POST',
        '/api/agent/run',
        { agentName: agent, args },
        { 'Idempotency-Key': theirs.idempotencyKey },
      );
    const first = await runAgent(stranger, mine.agent, { other: 1 });
    const [repeat, original] = [
      await runAgent(stranger, mine.agent, { other: 1 }),
      await runAgent(owner, theirs.agent, {}),
    ];
    expect([first.status, first.headers.get('idempotency-replayed'), first.body.output]).toEqual([
      200,
      null,
      { ran: { other: 1 } },
    ]);
    expect([repeat.body, original.body.agentExecutionId]).toEqual([first.body, theirs.executionId]);
  });
});
