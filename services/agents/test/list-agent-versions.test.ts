import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('ListAgentVersions', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('b', '1'));
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('b', '2')) });
  });
  afterAll(() => agents.service.stop());

  it('lists versions, newest first', async () => {
    const { versions } = await agents.operate('listAgentVersions', { name: 'b' });
    expect(versions).toMatchObject([
      { version: 2, createdBy: 'test' },
      { version: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
  });

  it('answers 404 for the versions of an unknown name', async () => {
    await expect(agents.operate('listAgentVersions', { name: 'missing' })).rejects.toMatchObject({
      reason: 'NOT_FOUND',
    });
  });
  it('rejects an empty name', async () => {
    await expect(agents.operate('listAgentVersions', { name: '' })).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
    });
  });
});
