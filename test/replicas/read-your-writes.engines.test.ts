import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { newId } from 'platform/core/ids.ts';
import { expressionAgent, request, startStack, type Reply, type Stack, type Tenant } from '../support/stack.ts';

const AGENT = 'changing';
const ROUNDS = 3;
/** Through each gateway; these call the replicas of a service in turn, so every replica is asked, and has in memory what it keeps there. */
const EACH = 8;

let stack: Stack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await startStack();
  tenant = await stack.tenant({ credits: 10_000 });
});
afterAll(() => stack.stop());

/** The same request through every gateway, often, at once. */
const everywhere = (method: string, path: string, body?: () => unknown): Promise<Reply[]> =>
  Promise.all(
    stack.baseUrls.flatMap((baseUrl) =>
      Array.from({ length: EACH }, () => request(baseUrl, method, path, { token: tenant.token, body: body?.() })),
    ),
  );
const told = (replies: readonly Reply[], of: (reply: Reply) => unknown): unknown[] =>
  [...new Set(replies.map((reply) => JSON.stringify([reply.status, of(reply)])))].map((text) => JSON.parse(text));

describe('what changes at one replica holds at the other on the next request', () => {
  it('has two replicas', () => expect(stack.operator.clients(AgentsServiceService, 'agents')).toHaveLength(2));

  it('a definition that one publishes is what both run, and one that it retires is refused by both', async () => {
    const run = () => everywhere('POST', '/api/agent/run', () => ({ agentName: AGENT, args: {} }));
    const names = async () => told(await everywhere('GET', '/api/agent/run'), ({ body }) => body.agents);
    for (let round = 0; round < ROUNDS; round++) {
      for (const agents of stack.operator.clients(AgentsServiceService, 'agents')) {
        const as = () => stack.operator.as(tenant.organizationId);
        const output = newId();
        await agents.applyAgent(
          {
            definition: JSON.stringify(
              expressionAgent(AGENT, JSON.stringify(output), { outputSchema: { const: output } }),
            ),
          },
          as(),
        );
        await agents.publishAgent({ name: AGENT, version: undefined }, as());
        expect(told(await run(), ({ body }) => body.output ?? body)).toEqual([[200, output]]);
        expect(await names()).toEqual([[200, [{ name: AGENT }]]]);
        await agents.retireAgent({ name: AGENT }, as());
        expect(told(await run(), ({ body }) => body.code)).toEqual([[404, 'not_found']]);
        expect(await names()).toEqual([[200, []]]);
      }
    }
  });

  it('a schema that one changes is what both check by, and a type that it deletes is gone for both', async () => {
    const at = (turn: number) => (method: string, path: string, body?: unknown) =>
      request(stack.baseUrls[turn % 2] as string, method, path, { token: tenant.token, body });
    for (let round = 0; round < ROUNDS; round++) {
      const [one, other] = [at(round), at(round + 1)];
      const type = (
        await one('POST', '/api/memory/types', { type: `T${newId()}`, jsonSchema: { required: ['before'] } })
      ).body;
      const create = (member: string) =>
        everywhere('POST', '/api/memory/objects', () => ({ typeId: type.id, key: newId(), content: { [member]: 1 } }));
      const created = await create('before');
      expect(told(created, () => undefined)).toEqual([[201, null]]);
      expect(told(await create('after'), ({ body }) => body.details[0].path)).toEqual([[400, '/content/before']]);

      expect(
        told(
          await Promise.all(created.map(({ body }, turn) => at(turn)('DELETE', `/api/memory/objects/${body.id}`))),
          () => undefined,
        ),
      ).toEqual([[200, null]]);
      expect((await other('PUT', `/api/memory/types/${type.id}`, { jsonSchema: { required: ['after'] } })).status).toBe(
        200,
      );
      expect(told(await create('before'), ({ body }) => body.details[0].path)).toEqual([[400, '/content/after']]);
      const objects = await create('after');
      expect(told(objects, () => undefined)).toEqual([[201, null]]);

      await Promise.all(objects.map(({ body }, turn) => at(turn)('DELETE', `/api/memory/objects/${body.id}`)));
      expect((await one('DELETE', `/api/memory/types/${type.id}`)).status).toBe(200);
      expect(told(await create('after'), ({ body }) => body.code)).toEqual([[404, 'not_found']]);
      expect(told(await everywhere('GET', `/api/memory/types/${type.id}`), ({ body }) => body.code)).toEqual([
        [404, 'not_found'],
      ]);
    }
  });
});
