import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService, ListAuditEntriesRequest } from 'proto/auth/v1/auth.ts';
import { eventually } from 'platform/service/test-end.ts';
import { request, untilAvailable } from '../support/request.ts';
import { REPOSITORY, startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const NOTES = JSON.parse(readFileSync(join(REPOSITORY, 'examples/agents/notes.json'), 'utf8')) as object;
const NOTE = JSON.parse(readFileSync(join(REPOSITORY, 'examples/memory-types/note.json'), 'utf8')) as object;
const script = (name: string, body: string, types: string[], access = 'write') => ({
  ...{ apiVersion: 'agents/v1', kind: 'FunctionalAgent', name, argumentsSchema: {} },
  runtime: { type: 'script', language: 'javascript', source: `async function run(args) {${body}}` },
  tools: { memory: { types, access } },
});

interface CallbackCall {
  agentExecutionId: string;
  callback: { token: string; expiresAt: string };
}
/** What the endpoint of the http agents does when it is called. */
let onCall: (call: CallbackCall) => Promise<unknown>;
let endpoint: Server;
let stack: Stack;
let tenant: Tenant;
let neighbour: Tenant;
beforeAll(async () => {
  endpoint = createServer((received, response) => {
    let text = '';
    received.on('data', (part) => (text += String(part)));
    received.on('end', () => {
      onCall(JSON.parse(text) as CallbackCall).then(
        (output) => response.end(JSON.stringify({ output })),
        (error: unknown) => response.end(JSON.stringify({ error: String(error) })),
      );
    });
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  stack = await startStack({ env: { AGENT_NETWORKS: '127.0.0.1/32' } });
  const agents = [
    NOTES,
    script('reader', 'return memory.find();', ['note'], 'read'),
    script('other', 'return memory.find({ type: args.type });', ['Other']),
  ];
  tenant = await stack.tenant({ credits: 100, agents });
  neighbour = await stack.tenant({ credits: 100, agents });
  for (const { request: send } of [tenant, neighbour]) {
    expect((await send('POST', '/api/memory/types', NOTE)).status).toBe(201);
    expect((await send('POST', '/api/memory/types', { ...NOTE, type: 'Other' })).status).toBe(201);
  }
  const operate = stack.operator.as(tenant.organizationId);
  const client = stack.operator.client(AgentsServiceService, 'agents');
  const value = `whsec_${Buffer.alloc(32, 'k').toString('base64')}`;
  await client.setSecret({ name: 'signing', value, overlapSeconds: 0 }, operate);
  const { port } = endpoint.address() as AddressInfo;
  for (const [name, access] of [
    ['remote', 'write'],
    ['remote-reader', 'read'],
  ]) {
    const runtime = { type: 'http', url: `http://127.0.0.1:${port}/`, secretRef: 'signing' };
    const tools = { memory: { types: ['note'], access } };
    const definition = { ...script(name!, '', []), runtime, tools, limits: { maxToolCalls: 12 } };
    await client.applyAgent({ definition: JSON.stringify(definition), dryRun: undefined }, operate);
    await client.publishAgent({ name: name!, version: undefined }, operate);
  }
});
afterAll(async () => {
  await stack.stop();
  await new Promise((resolve) => endpoint.close(resolve));
});

const run = (agentName: string, args: unknown, who = tenant) =>
  who.request('POST', '/api/agent/run', { agentName, args });
/** A request of the endpoint with the token of its run. */
const callBack = (token: string, method: string, path: string, body?: unknown) =>
  request(stack.baseUrl, method, path, { token, body });

describe('an agent with tools', () => {
  it('keeps notes, of its own organization', async () => {
    const first = await run('notes', { topic: 'tea', text: 'green' });
    expect(first.body.output).toEqual({ total: 1, notes: [{ topic: 'tea', text: 'green' }] });
    await run('notes', { topic: 'tea', text: 'black' });
    await run('notes', { topic: 'milk', text: 'none' });
    expect((await run('notes', {})).body.output).toMatchObject({ total: 2 });
    expect((await run('notes', { topic: 'tea' })).body.output.notes).toEqual([{ topic: 'tea', text: 'black' }]);
    expect((await run('notes', {}, neighbour)).body.output).toEqual({ total: 0, notes: [] });
    expect((await run('notes', { topic: 'milk', text: null })).body.output).toMatchObject({ total: 1 });
    const { items } = (await tenant.request('GET', '/api/memory/objects?type=note')).body;
    expect(items).toMatchObject([{ key: 'tea', content: { text: 'black' }, revision: 2 }]);
  });

  it('sees no type that its definition does not list', async () => {
    await tenant.request('POST', '/api/memory/objects', { type: 'Other', key: 'o', content: { text: 'o' } });
    expect((await run('other', { type: 'Other' })).body.output).toMatchObject({ total: 1 });
    expect((await run('other', { type: 'note' })).body.output).toMatchObject({ total: 0 });
  });

  it('is named in the audit trail, with its run', async () => {
    const { agentExecutionId } = (await run('notes', { topic: 'audit', text: 'me' })).body;
    const auth = stack.operator.client(AuthServiceService, 'auth');
    await eventually(async () => {
      const { entries } = await auth.listAuditEntries(
        ListAuditEntriesRequest.fromPartial({ action: 'memory_object.create', actor: agentExecutionId, pageSize: 10 }),
        stack.operator.as(tenant.organizationId),
      );
      return entries.length === 1 && entries[0]!.actorKind === 'agent_execution' && entries[0]!.actorName === 'notes';
    });
  });

  it('is refused by the schema of the type, in words that the caller may read', async () => {
    const bad = { ...script('bad', "await memory.create({ type: 'note', key: 'x', content: { n: 1 } });", ['note']) };
    const operate = stack.operator.as(tenant.organizationId);
    const client = stack.operator.client(AgentsServiceService, 'agents');
    await client.applyAgent({ definition: JSON.stringify(bad), dryRun: undefined }, operate);
    await client.publishAgent({ name: 'bad', version: undefined }, operate);
    expect((await run('bad', {})).body).toMatchObject({
      ...{ success: false, code: 'agent_failed', error: "The content does not match the type's JSON Schema" },
    });
  });
});

describe('the endpoint of an http agent, with the callback token of a run', () => {
  it('works on memory objects of the listed types by the REST API, as the run', async () => {
    onCall = async ({ callback: { token } }) => {
      const body = { type: 'note', key: 'remote', content: { text: 'one' } };
      const made = await callBack(token, 'POST', '/api/memory/objects', body);
      const { id } = made.body;
      const list = await callBack(token, 'GET', '/api/memory/objects');
      const replies = [
        made,
        await callBack(token, 'PATCH', `/api/memory/objects/${id}`, { content: { text: 'two' } }),
        await callBack(token, 'GET', `/api/memory/objects/${id}`),
        await callBack(token, 'DELETE', `/api/memory/objects/${id}`),
        await callBack(token, 'POST', '/api/memory/objects', { ...body, type: 'Other' }),
        await callBack(token, 'GET', '/api/memory/objects?type=Other'),
      ];
      return {
        statuses: replies.map(({ status }) => status),
        types: list.body.items.map(({ type }: { type: string }) => type),
      };
    };
    const { output } = (await run('remote', {})).body;
    expect(output.statuses).toEqual([201, 200, 200, 200, 404, 200]);
    expect(new Set(output.types)).toEqual(new Set(['note']));
  });

  it('is refused everything else', async () => {
    onCall = async ({ callback: { token } }) => {
      const tried: [string, string, unknown?][] = [
        ['GET', '/api/auth/whoami'],
        ['GET', '/api/memory/types'],
        ['POST', '/api/memory/types', NOTE],
        ['GET', '/api/agent/run'],
        ['POST', '/api/agent/run', { agentName: 'notes', args: {} }],
        ['GET', '/api/agent/executions'],
      ];
      const replies = [];
      for (const [method, path, body] of tried) replies.push(await callBack(token, method, path, body));
      return replies.map(({ status, body }) => [status, body.code]);
    };
    expect((await run('remote', {})).body.output).toEqual(Array.from({ length: 6 }, () => [403, 'forbidden']));
  });

  it('only reads where the definition says so', async () => {
    onCall = async ({ callback: { token } }) => {
      const written = await callBack(token, 'POST', '/api/memory/objects', { type: 'note', content: { text: '' } });
      const read = await callBack(token, 'GET', '/api/memory/objects');
      return [written.status, written.body.code, read.status];
    };
    expect((await run('remote-reader', {})).body.output).toEqual([403, 'forbidden', 200]);
  });

  it('makes as many requests as the definition allows, also when it makes many at once', async () => {
    let unavailable = 0;
    const onceAvailable = (token: string) =>
      untilAvailable(async () => {
        const reply = await callBack(token, 'GET', '/api/memory/objects?pageSize=1');
        if (reply.status === 503) unavailable += 1;
        return reply;
      });
    onCall = async ({ callback: { token } }) => {
      const replies = await Promise.all(Array.from({ length: 30 }, () => onceAvailable(token)));
      return replies.map(({ status }) => status);
    };
    const statuses = (await run('remote', {})).body.output as number[];
    const [succeeded, refused] = [200, 403].map((status) => statuses.filter((one) => one === status).length);
    expect(succeeded! + refused!).toBe(30);
    // one that failed for a machine that stalled may have been counted
    expect(succeeded).toBeGreaterThanOrEqual(12 - unavailable);
    expect(succeeded).toBeLessThanOrEqual(12);
  });

  it('is refused from the moment on at which the run has ended', async () => {
    let call: CallbackCall | undefined;
    onCall = async (given) => {
      call = given;
      return 1;
    };
    const unknown = await callBack(`akc_${'0'.repeat(49)}`, 'GET', '/api/memory/objects');
    await run('remote', {});
    const { token, expiresAt } = call!.callback;
    expect(new Date(expiresAt).getTime()).toBeGreaterThan(Date.now());
    const late = await callBack(token, 'GET', '/api/memory/objects');
    expect([late.status, { ...late.body, requestId: '' }]).toEqual([401, { ...unknown.body, requestId: '' }]);
  });

  it('is refused once the run is cancelled, or its organization deactivated', async () => {
    const { promise: called, resolve } = Promise.withResolvers<CallbackCall>();
    onCall = (given) => {
      resolve(given);
      return new Promise(() => undefined);
    };
    const running = run('remote', {});
    const { agentExecutionId, callback } = await called;
    const get = async () => (await callBack(callback.token, 'GET', '/api/memory/objects')).status;
    expect(await get()).toBe(200);
    const auth = stack.operator.client(AuthServiceService, 'auth');
    await auth.deactivateOrganization({ id: tenant.organizationId }, stack.operator.as());
    expect(await get()).toBe(401);
    await auth.activateOrganization({ id: tenant.organizationId }, stack.operator.as());
    expect(await get()).toBe(200);
    await tenant.request('DELETE', `/api/agent/executions/${agentExecutionId}`);
    await running;
    expect(await get()).toBe(401);
  });

  it('finds no token in what the run leaves behind', async () => {
    let token = '';
    onCall = async ({ callback }) => {
      token = callback.token;
      throw token;
    };
    const reply = await run('remote', {});
    expect(reply.body).toMatchObject({ code: 'agent_failed', error: '[redacted]' });
    const { body } = await tenant.request('GET', `/api/agent/executions/${reply.body.agentExecutionId}`);
    expect(JSON.stringify(body)).not.toContain(token);
    expect(stack.outputs().join('')).not.toContain(token);
  });
});
