import { startAgents } from './fixture.ts';

it('ListSecrets lists the names without the values, sorted', async () => {
  const agents = await startAgents();
  for (const name of ['b', 'a', 'c'])
    await agents.operate('setSecret', { name, value: `hunter-${name}`, overlapSeconds: 0 });
  const { secrets } = await agents.operate('listSecrets', {});
  expect(secrets.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  expect(JSON.stringify(secrets)).not.toContain('hunter');
  await agents.service.stop();
});
