import { newId } from 'platform/core/ids.ts';
import { operator, OPERATOR, serverToken } from 'platform/service/testing.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

let agents: Agents;
beforeAll(async () => {
  agents = await startAgents();
});
afterAll(() => agents.service.stop());

const BYTES = 260_000;
const choices = Array.from({ length: 300 }, (_, i) => `${String.fromCharCode(0x4e00 + i)}?`).join('');
const hostile: [name: string, subschema: object, text: string][] = [
  ['url', { format: 'url' }, `http://${'a@'.repeat(BYTES / 2)}`],
  ['regex', { format: 'regex' }, '(?<a>)|'.repeat(BYTES / 7)],
  ['choices', { pattern: `^(?:${choices}!)*$` }, '!'.repeat(BYTES)],
  ['nested', { pattern: '^(a+)+$' }, `${'a'.repeat(BYTES)}!`],
];

it('args of 256 KiB against hostile argument schemas are answered, and a neighbour meanwhile', async () => {
  for (const [name, text] of hostile)
    await agents.publish(definitionOf(name, '1', { argumentsSchema: { properties: { text } } }));
  const neighbour = newId();
  const definition = JSON.stringify(definitionOf('quiet', '"ran"'));
  const asOperator = agents.service.as(operator(neighbour));
  await agents.service.client(AgentsServiceService, OPERATOR).applyAgent({ definition }, asOperator);
  await agents.service.client(AgentsServiceService, OPERATOR).publishAgent({ name: 'quiet' }, asOperator);

  const runQuiet = () =>
    agents.service
      .client(AgentsServiceService, 'gateway')
      .runAgent({ agentName: 'quiet', args: '{}' }, agents.service.as(serverToken(neighbour)));
  // Starts a runner, which takes longer than the whole flood on a slow machine.
  await runQuiet();

  const requests = hostile.flatMap(([name, , text]) => Array.from({ length: 10 }, () => ({ name, text })));
  const total = requests.length;
  const reasons = new Set<string>();
  const sendUntilNoneIsLeft = async (): Promise<void> => {
    for (let request; (request = requests.shift());)
      reasons.add(
        await agents.run(request.name, { text: request.text }).then(
          () => 'ran',
          (error: { reason: string }) => error.reason,
        ),
      );
  };
  const flood = Promise.all(Array.from({ length: 4 }, sendUntilNoneIsLeft));
  let runs = 0;
  for (; requests.length > 0; runs++) await runQuiet();
  await flood;
  expect(runs).toBeGreaterThan(total / 20);
  expect([...reasons]).toEqual(['INVALID_ARGS']);
});
