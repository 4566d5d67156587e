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

  let sent = 0;
  let isOver = false;
  const reasons = new Set<string>();
  const sendUntilItIsOver = async (): Promise<void> => {
    while (!isOver || sent < hostile.length) {
      const [name, , text] = hostile[sent++ % hostile.length]!;
      reasons.add(
        await agents.run(name, { text }).then(
          () => 'ran',
          (error: { reason: string }) => error.reason,
        ),
      );
    }
  };
  const flood = Promise.all(Array.from({ length: 4 }, sendUntilItIsOver));
  // If the flood starved the neighbour, this would never end.
  for (let run = 0; run < 3; run++) await runQuiet();
  isOver = true;
  await flood;
  expect([...reasons]).toEqual(['INVALID_ARGS']);
});
