import fc from 'fast-check';
import { parseJson } from 'platform/core/parse-json.ts';
import { newId } from 'platform/core/ids.ts';
import { OPERATOR, operator, serverToken } from 'platform/service/testing.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { spelledNames, textsWith } from '../../../platform/test/json/escaped-names.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';
import { chatOf, completionOf } from './runtimes/llm/model-server.ts';
import { startEndpoint, type Endpoint } from './runtimes/network/endpoint.ts';
import { SECRET } from './runtimes/test-runtimes.ts';

const RUNTIMES = ['expression', 'script', 'http', 'llm'] as const;
const ORGANIZATIONS = [newId(), newId()];

let agents: Agents;
let endpoint: Endpoint;
beforeAll(async () => {
  endpoint = await startEndpoint(({ path, body }, response) => {
    // the args as they came, without a value made of them
    if (path === '/echo') response.end(`{"output":${body.slice(body.indexOf('"args":') + '"args":'.length)}`);
    else response.end(JSON.stringify(completionOf(chatOf({ body }).messages[0]!.content)));
  });
  agents = await startAgents({ credits: 1_000_000, env: { AGENT_NETWORKS: '127.0.0.1/32' } });
  const runtimes: Record<(typeof RUNTIMES)[number], object> = {
    expression: { language: 'jsonata', source: '$merge([$])' },
    script: { language: 'javascript', source: 'const run = (args) => args;' },
    http: { url: `${endpoint.url}/echo`, secretRef: 'signing' },
    llm: { url: endpoint.url, model: 'tested', prompt: '{{args}}' },
  };
  for (const organizationId of ORGANIZATIONS) {
    const client = agents.service.client(AgentsServiceService, OPERATOR);
    const as = () => agents.service.as(operator(organizationId));
    await client.setSecret({ name: 'signing', value: SECRET, overlapSeconds: 0 }, as());
    for (const type of RUNTIMES) {
      const definition = definitionOf(type, '', { runtime: { type, ...runtimes[type] }, outputSchema: {} });
      await client.applyAgent({ definition: JSON.stringify(definition) }, as());
      await client.publishAgent({ name: type }, as());
    }
  }
});
afterAll(async () => {
  await agents.service.stop();
  await endpoint.close();
});

it('an organization gets its own names back, in whatever way they are spelled, and not those of another', async () => {
  await fc.assert(
    fc.asyncProperty(spelledNames, async (names) => {
      await Promise.all(
        RUNTIMES.map(async (type) => {
          const { textOf, valueOf } = textsWith();
          const told = [];
          for (const [i, organizationId] of ORGANIZATIONS.entries())
            told.push(await runAndRead(type, organizationId, textOf(names[i]!)));
          for (const [i, texts] of told.entries())
            expect([type, ...texts.map(parseJson)]).toStrictEqual([type, ...texts.map(() => valueOf(names[i]!))]);
        }),
      );
    }),
    { numRuns: Number(process.env.PROPERTY_RUNS ?? 25) },
  );
}, 600_000);

/** What each kind of reply gives as args or output. */
async function runAndRead(agentName: string, organizationId: string, args: string): Promise<string[]> {
  const principal = { principal: serverToken(organizationId) };
  const request = { agentName, args, idempotencyKey: newId() };
  const { agentExecutionId, output } = await agents.call('runAgent', request, principal);
  const replayed = await agents.call('runAgent', request, principal);
  const { agentExecution } = await agents.call('getAgentExecution', { id: agentExecutionId }, principal);
  return [output, replayed.output, agentExecution!.args!, agentExecution!.output!];
}
