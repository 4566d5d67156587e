import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('ListAgents', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('b', '1'));
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('b', '2')) });
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('a', '1')) });
  });
  afterAll(() => agents.service.stop());

  it('lists agents in every state, sorted by name', async () => {
    expect((await agents.operate('listAgents', {})).agents).toMatchObject([
      { name: 'a', state: 'draft', runnable: false },
      { name: 'b', state: 'published', latestVersion: 2, publishedVersion: 1, runnable: true },
    ]);
  });
});
