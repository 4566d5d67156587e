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

  it('writes an audit entry that says what a change changed, and none for a repeat', async () => {
    await agents.publish(definitionOf('once', '1'));
    await agents.operate('publishAgent', { name: 'once' });
    await agents.publish(definitionOf('once', '2'));
    await agents.operate('retireAgent', { name: 'once' });
    const entries = (await agents.events()).filter(
      ({ type, data }) => type === 'audit.entry.v1' && (data.target as { id: string }).id === 'once',
    );
    expect(entries.map(({ data }) => [data.action, data.changes])).toEqual([
      ['agent.apply', { latestVersion: [null, 1] }],
      ['agent.publish', { state: ['draft', 'published'], publishedVersion: [null, 1] }],
      ['agent.apply', { latestVersion: [1, 2] }],
      ['agent.publish', { publishedVersion: [1, 2] }],
      ['agent.retire', { state: ['published', 'retired'], publishedVersion: [2, null] }],
    ]);
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
