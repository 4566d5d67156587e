import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import { anyId, expectError, detailPaths } from '../support/expect-error.ts';
import { request, untilAvailable } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const order = {
  type: 'object',
  required: ['item'],
  additionalProperties: false,
  properties: {
    item: { type: 'string' },
    colour: { enum: ['secret-red', 'secret-blue'] },
    size: { const: 'secret-size' },
  },
};
const AGENTS = [
  expressionAgent('quote', '{ "line": item & "!" }', {
    description: 'Quotes an order.',
    argumentsSchema: order,
    outputSchema: { type: 'object' },
    pricing: { base: 1, max: 2, perUnit: { steps: 0.001 } },
  }),
  expressionAgent('echo', '{ "echo": $ }'),
  expressionAgent('bare', '{ "ran": true }', { argumentsSchema: undefined, pricing: undefined }),
  expressionAgent('chat', '{}', { kind: 'ConversationalAgent' }),
  expressionAgent('form', '{}', { interactiveTools: ['file-picker'] }),
];

let stack: RunningStack;
let tenant: Tenant;
/** A JWT of a user of the organization who has no role. */
let member: string;
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant({ credits: 100, agents: AGENTS });
  const agents = stack.operator.client(AgentsServiceService, 'agents');
  await agents.applyAgent(
    { definition: JSON.stringify(expressionAgent('draft', '{}')) },
    stack.operator.as(tenant.organizationId),
  );
  await agents.applyAgent(
    { definition: JSON.stringify(expressionAgent('retired', '{}')) },
    stack.operator.as(tenant.organizationId),
  );
  await agents.publishAgent({ name: 'retired', version: undefined }, stack.operator.as(tenant.organizationId));
  await agents.retireAgent({ name: 'retired' }, stack.operator.as(tenant.organizationId));
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const email = `${newId()}@example.com`;
  await auth.createUser({ email, name: 'Member', roles: [], groups: [] }, stack.operator.as(tenant.organizationId));
  member = (await auth.issueJwt({ email }, stack.operator.as(tenant.organizationId))).jwt;
});

describe('GET /api/agent/run', () => {
  const list = (query = '') => tenant.request('GET', `/api/agent/run${query}`);

  describe('200', () => {
    it('lists the names of the runnable agents only, in alphabetical order', async () => {
      const reply = await list();
      expect([reply.status, reply.body]).toEqual([
        200,
        { agents: [{ name: 'bare' }, { name: 'echo' }, { name: 'quote' }] },
      ]);
    });

    it('adds the fields that include names', async () => {
      const { body } = await list('?include=description,argumentsSchema,outputSchema,pricing,version');
      const names = ['argumentsSchema', 'description', 'name', 'outputSchema', 'pricing', 'version'];
      expect(body.agents.map((agent: object) => Object.keys(agent).sort())).toEqual([names, names, names]);
      expect(body.agents[2]).toEqual({
        name: 'quote',
        description: 'Quotes an order.',
        argumentsSchema: order,
        outputSchema: { type: 'object' },
        pricing: { base: 1, max: 2, perUnit: { steps: 0.001 } },
        version: 1,
      });
      expect(body.agents[0]).toMatchObject({ name: 'bare', argumentsSchema: null, outputSchema: null });
    });

    it('adds no field that include does not name', async () => {
      expect((await list('?include=version')).body.agents[0]).toEqual({ name: 'bare', version: 1 });
    });

    it('answers an empty list to an organization without agents', async () => {
      const reply = await (await stack.tenant()).request('GET', '/api/agent/run');
      expect([reply.status, reply.body]).toEqual([200, { agents: [] }]);
    });
  });

  describe('400', () => {
    it.each([
      ['a field that cannot be included', '?include=secrets', '/include'],
      ['an empty include', '?include=', '/include'],
      ['include twice', '?include=version&include=pricing', '/include'],
      ['an unknown parameter', '?page=1', '/page'],
    ])('rejects %s', async (_what, query, at) => expectError(await list(query), 400, 'invalid_request', { at }));
  });

  describe('403', () => {
    it('refuses a tier without the agent API', async () => {
      const starter = await stack.tenant({ tier: 'starter' });
      expectError(await starter.request('GET', '/api/agent/run'), 403, 'tier_required');
    });
  });
});

describe('POST /api/agent/run', () => {
  const run = (agentName: unknown, args?: unknown, headers?: Record<string, string>) =>
    tenant.request('POST', '/api/agent/run', { agentName, args }, headers);

  describe('200', () => {
    it('answers with exactly the run result of the contract', async () => {
      const reply = await run('quote', { item: 'tea' });
      const { sessionId } = reply.body;
      expect([reply.status, reply.body]).toEqual([
        200,
        {
          success: true,
          sessionId,
          agentExecutionId: anyId,
          agent: 'quote',
          output: { line: 'tea!' },
          messages: reply.body.messages,
        },
      ]);
      expect([sessionId.slice(0, 4), sessionId.slice(4)]).toEqual(['api-', anyId]);
    });

    it('gives each message a role, and parts with type and text', async () => {
      const {
        body: { messages },
      } = await run('quote', { item: 'tea' });
      expect(Array.isArray(messages)).toBe(true);
      for (const message of messages) {
        expect(message).toEqual({ role: expect.any(String), parts: expect.any(Array) });
        for (const part of message.parts) expect(part).toEqual({ type: expect.any(String), text: expect.any(String) });
      }
    });

    it.each([
      ['null', null],
      ['zero', 0],
      ['an empty string', ''],
      ['false', false],
      ['an object of objects', { a: { b: [1, 'two', null] } }],
      ['unicode', 'žluťoučký 🐎'],
    ])('passes %s to an agent whose schema accepts any value', async (_what, args) => {
      const reply = await run('echo', args);
      expect([reply.status, reply.body.output]).toEqual([200, { echo: args }]);
    });

    it.each([
      ['{}', {}],
      ['null', null],
    ])('accepts %s for an agent without a schema', async (_what, args) => {
      expect((await run('bare', args)).body).toMatchObject({ success: true, output: { ran: true } });
    });

    it('accepts args of the maximum size', async () => {
      const reply = await run('echo', 'x'.repeat(262_144 - 2));
      expect([reply.status, reply.body.output.echo.length]).toEqual([200, 262_142]);
    });

    it('gives every run its own ids', async () => {
      const replies = await Promise.all(Array.from({ length: 5 }, () => run('bare', {})));
      expect(new Set(replies.flatMap(({ body }) => [body.sessionId.slice(4), body.agentExecutionId])).size).toBe(10);
    });
  });

  describe('400', () => {
    it.each<[string, unknown, string]>([
      ['a body without agentName', { args: {} }, '/agentName'],
      ['a body without args', { agentName: 'echo' }, '/args'],
      ['an agentName that is no string', { agentName: 7, args: {} }, '/agentName'],
      ['an agentName of null', { agentName: null, args: {} }, '/agentName'],
      ['an unknown member', { agentName: 'echo', args: {}, transcript: [] }, '/transcript'],
      ['a member that is set by a header', { agentName: 'echo', args: {}, idempotencyKey: 'k' }, '/idempotencyKey'],
      ['args over 256 KiB', { agentName: 'echo', args: 'x'.repeat(262_144 - 1) }, '/args'],
      ['a body that is an array', [], ''],
      ['a body that is null', 'null', ''],
    ])('rejects %s', async (_what, body, at) =>
      expectError(await tenant.request('POST', '/api/agent/run', body), 400, 'invalid_request', { at }),
    );

    it('rejects a query parameter', async () => {
      expectError(
        await tenant.request('POST', '/api/agent/run?dryRun=true', { agentName: 'echo', args: {} }),
        400,
        'invalid_request',
        { at: '/dryRun' },
      );
    });

    it('rejects an unknown member before it looks up the agent', async () => {
      expectError(
        await tenant.request('POST', '/api/agent/run', { agentName: 'nobody', args: {}, extra: 1 }),
        400,
        'invalid_request',
        { at: '/extra' },
      );
    });

    it('names every violation of the argument schema', async () => {
      const reply = await run('quote', { colour: 'green', size: 7, weight: 1 });
      expectError(reply, 400, 'invalid_args');
      expect(detailPaths(reply).sort()).toEqual(['/args/colour', '/args/item', '/args/size', '/args/weight']);
    });

    it('never reveals a value of the schema or of the args', async () => {
      expect((await run('quote', { item: 'tea', colour: 'green', size: 7 })).text).not.toMatch(/secret|green/);
    });

    it('names at most twenty violations', async () => {
      const args = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`extra${i}`, i]));
      expect(detailPaths(await run('quote', args))).toHaveLength(20);
    });

    it.each([
      ['an object with a member', { a: 1 }],
      ['an array', []],
      ['a string', ''],
      ['zero', 0],
    ])('rejects %s for an agent without a schema', async (_what, args) => {
      expectError(await run('bare', args), 400, 'invalid_args', { at: '/args' });
    });

    it.each([
      ['is not functional', 'chat'],
      ['needs interactive tools', 'form'],
    ])('rejects an agent that %s', async (_what, name) => {
      expectError(await run(name, {}), 400, 'agent_not_runnable');
    });

    it('leaves no execution behind', async () => {
      const fresh = await stack.tenant({ credits: 1, agents: AGENTS });
      await fresh.request('POST', '/api/agent/run', { agentName: 'quote', args: {} });
      await fresh.request('POST', '/api/agent/run', { agentName: 'chat', args: {} });
      expect((await fresh.request('GET', '/api/agent/executions')).body).toEqual({ items: [] });
    });
  });

  describe('403', () => {
    it('refuses a tier without the agent API, before it looks at the body', async () => {
      const starter = await stack.tenant({ tier: 'starter', credits: 10, agents: [expressionAgent('echo', '{}')] });
      expectError(await starter.request('POST', '/api/agent/run', '{'), 403, 'tier_required');
    });

    it.each([
      ['GET', '/api/agent/run'],
      ['POST', '/api/agent/run'],
      ['GET', '/api/agent/executions'],
      ['GET', `/api/agent/executions/${newId()}`],
      ['DELETE', `/api/agent/executions/${newId()}`],
    ])('refuses a user without the admin role, whatever the rest of the request: %s %s', async (method, path) => {
      const body = method === 'POST' ? { agentName: 'nobody' } : undefined;
      const reply = await untilAvailable(() => request(stack.baseUrls[0]!, method, path, { token: member, body }));
      expectError(reply, 403, 'admin_required');
      expect(reply.body.error).toBe('Admin access required');
    });

    it('runs an agent in a tier with the agent API', async () => {
      const professional = await stack.tenant({
        tier: 'professional',
        credits: 10,
        agents: [expressionAgent('echo', '{}')],
      });
      expect((await professional.request('POST', '/api/agent/run', { agentName: 'echo', args: {} })).status).toBe(200);
    });
  });

  describe('404', () => {
    it.each([
      ['unknown', `agent-${newId()}`],
      ['not published yet', 'draft'],
      ['retired', 'retired'],
      ['named in another case', 'ECHO'],
    ])('answers an agent that is %s', async (_what, name) => {
      expectError(await run(name, {}), 404, 'not_found');
    });

    it('answers an unpublished agent like an unknown one, whatever its args', async () => {
      const [draft, unknown] = await Promise.all([run('draft', [1]), run('nobody', [1])]);
      expect({ ...draft.body, requestId: '' }).toEqual({ ...unknown.body, requestId: '' });
    });
  });
});
