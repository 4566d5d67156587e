import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('RetireAgent', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
  });
  afterAll(() => agents.service.stop());

  it('removes the agent from the API, keeps its executions, and can be undone by publishing', async () => {
    await agents.publish(definitionOf('leaves', '1'));
    const { agentExecutionId } = await agents.run('leaves', {});
    expect(await agents.operate('retireAgent', { name: 'leaves' })).toMatchObject({
      agent: { state: 'retired', publishedVersion: undefined },
    });
    await expect(agents.run('leaves', {})).rejects.toMatchObject({ reason: 'NOT_FOUND' });
    expect((await agents.call('listRunnableAgents', {})).agents).toEqual([]);
    expect((await agents.call('getAgentExecution', { id: agentExecutionId })).agentExecution).toMatchObject({
      status: 'succeeded',
    });
    await agents.operate('publishAgent', { name: 'leaves' });
    expect((await agents.run('leaves', {})).success).toBe(true);
  });

  it('remembers the version that was published, which publishing without a version makes live again', async () => {
    await agents.publish(definitionOf('returns', '1'));
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('returns', '2')) });
    for (const repeat of [1, 2]) {
      await agents.operate('retireAgent', { name: 'returns' });
      const { agent } = await agents.operate('publishAgent', { name: 'returns' });
      expect([repeat, agent!.publishedVersion, agent!.latestVersion]).toEqual([repeat, 1, 2]);
    }
    await agents.operate('retireAgent', { name: 'returns' });
    await agents.operate('publishAgent', { name: 'returns', version: 2 });
    expect(await agents.operate('publishAgent', { name: 'returns' })).toMatchObject({ agent: { publishedVersion: 2 } });
  });

  it('is idempotent', async () => {
    await agents.publish(definitionOf('twice', '1'));
    await agents.operate('retireAgent', { name: 'twice' });
    expect(await agents.operate('retireAgent', { name: 'twice' })).toMatchObject({ agent: { state: 'retired' } });
  });

  it('answers 404 for an unknown name', async () => {
    await expect(agents.operate('retireAgent', { name: 'missing' })).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
  it('rejects an empty name', async () => {
    await expect(agents.operate('retireAgent', { name: '' })).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
  });
});
