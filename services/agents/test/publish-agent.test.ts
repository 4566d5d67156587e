import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('PublishAgent', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
  });
  afterAll(() => agents.service.stop());

  it('publishes the newest version, and an older one by its number', async () => {
    for (const source of ['1', '2'])
      await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('moves', source)) });
    expect(await agents.operate('publishAgent', { name: 'moves' })).toMatchObject({
      agent: { state: 'published', publishedVersion: 2 },
    });
    expect((await agents.run('moves', {})).output).toBe('2');
    expect(await agents.operate('publishAgent', { name: 'moves', version: 1 })).toMatchObject({
      agent: { publishedVersion: 1, latestVersion: 2 },
    });
    expect((await agents.run('moves', {})).output).toBe('1');
  });

  it('writes an audit entry for a change and none for a repeat', async () => {
    await agents.publish(definitionOf('once', '1'));
    await agents.operate('publishAgent', { name: 'once' });
    const entries = (await agents.events()).filter(
      ({ data }) => data.action === 'agent.publish' && (data.target as { id: string }).id === 'once',
    );
    expect(entries).toHaveLength(1);
  });

  it.each([
    ['missing', undefined],
    ['moves', 9],
  ])('answers 404 for an unknown agent or version: %s version %s', async (name, version) => {
    await expect(agents.operate('publishAgent', { name, version })).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
  it('rejects an empty name', async () => {
    await expect(agents.operate('publishAgent', { name: '' })).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
  });
});
