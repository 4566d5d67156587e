import { newId } from 'platform/core/ids.ts';
import { definitionOf } from './fixture.ts';
import { simulateProcesses } from './simulated-processes.ts';

it('an agent is read for one organization, whoever else asks for the same name in its turn', async () => {
  const { healthy, organizationId, publish, close } = await simulateProcesses();
  await publish(definitionOf('mine', '1'));
  const { definitions } = healthy;
  const [mine, theirs] = await Promise.all([
    definitions.byName(organizationId, 'mine'),
    definitions.byName(newId(), 'mine'),
  ]);
  expect(mine).toMatchObject({ organizationId, name: 'mine' });
  expect(theirs).toBeUndefined();
  await close();
});
