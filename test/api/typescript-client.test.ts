import { openClient, type Schemas } from 'agent-memory-client';
import { sharedStack } from '../support/shared-stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

/** Everything that a program does, with the generated client and nothing else. */
describe('the typed client', () => {
  let tenant: Tenant;
  let client: ReturnType<typeof openClient>;
  beforeAll(async () => {
    const stack = await sharedStack();
    tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('double', '{"twice": n * 2}')] });
    client = openClient({ baseUrl: stack.baseUrl, token: tenant.token });
  });

  it('runs an agent, and gets the same answer again under the idempotency key', async () => {
    const run = () =>
      client.POST('/api/agent/run', {
        params: { header: { 'Idempotency-Key': 'once' } },
        body: { agentName: 'double', args: { n: 21 } },
      });
    const [first, again] = [await run(), await run()];
    expect([first.data?.output, again.data]).toEqual([{ twice: 42 }, first.data]);
    expect([again.response.headers.get('idempotency-replayed'), first.response.headers.get('credits-charged')]).toEqual(
      ['true', '1'],
    );
    const { data } = await client.GET('/api/agent/executions/{id}', {
      params: { path: { id: first.data?.agentExecutionId ?? '' } },
    });
    expect([data?.status, data?.charge]).toEqual(['succeeded', 1]);
  });

  it('keeps typed memory: creates, reads, lists, changes and deletes', async () => {
    const { data: type } = await client.POST('/api/memory/types', {
      body: { type: 'note', jsonSchema: { type: 'object', required: ['text'] } },
    });
    const { data: object } = await client.POST('/api/memory/objects', {
      body: { typeId: type?.id, key: 'n-1', content: { text: 'first' } },
    });
    const { id } = object as Schemas['MemoryObject'];
    const path = { id };
    await client.PATCH('/api/memory/objects/{id}', { params: { path }, body: { content: { text: 'second' } } });
    const list = await client.GET('/api/memory/objects', { params: { query: { type: 'note', pageSize: 1 } } });
    expect([list.data?.total, list.data?.items[0]?.content]).toEqual([1, { text: 'second' }]);
    expect((await client.DELETE('/api/memory/objects/{id}', { params: { path } })).data).toEqual({ success: true, id });
    expect((await client.GET('/api/memory/objects/{id}', { params: { path } })).error?.code).toBe('not_found');
  });

  it('tells a failure by its code, its sentence and its request id', async () => {
    const { data, error, response } = await client.POST('/api/memory/types', { body: { type: '1', jsonSchema: {} } });
    expect([data, response.status, error?.code, error?.details?.[0]?.path]).toEqual([
      undefined,
      400,
      'invalid_request',
      '/type',
    ]);
    expect(error?.requestId).toBe(response.headers.get('x-request-id'));
    const { error: refused } = await openClient({ baseUrl: response.url.replace(/\/api.*/, ''), token: 'wrong' }).GET(
      '/api/auth/whoami',
    );
    expect(refused?.code).toBe('unauthenticated');
  });
});
