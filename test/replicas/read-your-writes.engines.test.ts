import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { newId } from 'platform/core/ids.ts';
import { request, type Reply } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const AGENT = 'changing';
const ROUNDS = 3;
/** Requests at each gateway. Gateways call the replicas in turn, so every replica gets some and fills its caches. */
const EACH = 8;

let stack: RunningStack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant({ credits: 10_000 });
});

/** Sends the same request EACH times at every gateway, concurrently. */
const requestEverywhere = (method: string, path: string, body?: () => unknown): Promise<Reply[]> =>
  Promise.all(
    stack.baseUrls.flatMap((baseUrl) =>
      Array.from({ length: EACH }, () => request(baseUrl, method, path, { token: tenant.token, body: body?.() })),
    ),
  );
/** The different [status, property] of the replies. */
const distinct = (replies: readonly Reply[], property: (reply: Reply) => unknown): unknown[] =>
  [...new Set(replies.map((reply) => JSON.stringify([reply.status, property(reply)])))].map((text) => JSON.parse(text));

describe('a change at one replica takes effect at the other on the next request', () => {
  it('has two replicas', async () =>
    expect(await stack.operator.clients(AgentsServiceService, 'agents')).toHaveLength(2));

  it('both run the definition that one publishes, and neither runs an agent that one retires', async () => {
    const run = () => requestEverywhere('POST', '/api/agent/run', () => ({ agentName: AGENT, args: {} }));
    const names = async () => distinct(await requestEverywhere('GET', '/api/agent/run'), ({ body }) => body.agents);
    for (let round = 0; round < ROUNDS; round++) {
      for (const agents of await stack.operator.clients(AgentsServiceService, 'agents')) {
        const as = () => stack.operator.as(tenant.organizationId);
        const output = newId();
        const { version } = await agents.applyAgent(
          {
            definition: JSON.stringify(
              expressionAgent(AGENT, JSON.stringify(output), { outputSchema: { const: output } }),
            ),
          },
          as(),
        );
        await agents.publishAgent({ name: AGENT, version }, as());
        expect(distinct(await run(), ({ body }) => body.output ?? body)).toEqual([[200, output]]);
        expect(await names()).toEqual([[200, [{ name: AGENT }]]]);
        await agents.retireAgent({ name: AGENT }, as());
        expect(distinct(await run(), ({ body }) => body.code)).toEqual([[404, 'not_found']]);
        expect(await names()).toEqual([[200, []]]);
      }
    }
  });

  it('both validate against the schema that one changes, and neither finds a type that one deletes', async () => {
    const at = (turn: number) => (method: string, path: string, body?: unknown) =>
      request(stack.baseUrls[turn % 2] as string, method, path, { token: tenant.token, body });
    for (let round = 0; round < ROUNDS; round++) {
      const [one, other] = [at(round), at(round + 1)];
      const type = (
        await one('POST', '/api/memory/types', { type: `T${newId()}`, jsonSchema: { required: ['before'] } })
      ).body;
      const create = (member: string) =>
        requestEverywhere('POST', '/api/memory/objects', () => ({
          typeId: type.id,
          key: newId(),
          content: { [member]: 1 },
        }));
      const created = await create('before');
      expect(distinct(created, () => undefined)).toEqual([[201, null]]);
      expect(distinct(await create('after'), ({ body }) => body.details[0].path)).toEqual([[400, '/content/before']]);

      expect(
        distinct(
          await Promise.all(created.map(({ body }, turn) => at(turn)('DELETE', `/api/memory/objects/${body.id}`))),
          () => undefined,
        ),
      ).toEqual([[200, null]]);
      expect((await other('PUT', `/api/memory/types/${type.id}`, { jsonSchema: { required: ['after'] } })).status).toBe(
        200,
      );
      expect(distinct(await create('before'), ({ body }) => body.details[0].path)).toEqual([[400, '/content/after']]);
      const objects = await create('after');
      expect(distinct(objects, () => undefined)).toEqual([[201, null]]);

      await Promise.all(objects.map(({ body }, turn) => at(turn)('DELETE', `/api/memory/objects/${body.id}`)));
      expect((await one('DELETE', `/api/memory/types/${type.id}`)).status).toBe(200);
      expect(distinct(await create('after'), ({ body }) => body.code)).toEqual([[404, 'not_found']]);
      expect(distinct(await requestEverywhere('GET', `/api/memory/types/${type.id}`), ({ body }) => body.code)).toEqual(
        [[404, 'not_found']],
      );
    }
  });
});
