import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('GetAgentVersion', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('b', '1'));
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('b', '2')) });
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('draft', '1')) });
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('draft', '2'), null, 4) });
  });
  afterAll(() => agents.service.stop());
  const read = async (name: string, version?: number): Promise<unknown> => {
    const { version: found, definition } = await agents.operate('getAgentVersion', { name, version });
    return [found!.version, JSON.parse(definition)];
  };

  it('reads the version that is asked for, else the published one, else the newest', async () => {
    expect(await read('b', 2)).toEqual([2, definitionOf('b', '2')]);
    expect(await read('b')).toEqual([1, definitionOf('b', '1')]);
    expect(await read('draft')).toEqual([2, definitionOf('draft', '2')]);
  });
  it('gives the definition as its author wrote it', async () => {
    const { version, definition } = await agents.operate('getAgentVersion', { name: 'draft' });
    expect(definition).toBe(JSON.stringify(definitionOf('draft', '2'), null, 4));
    expect(version).toMatchObject({ hash: expect.stringMatching(/^[0-9a-f]{64}$/), createdBy: 'test' });
  });
  it.each<[string, number | undefined]>([
    ['missing', undefined],
    ['b', 3],
    ['b', 0],
  ])('answers 404 for %s %s', async (name, version) => {
    await expect(agents.operate('getAgentVersion', { name, version })).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
  it('rejects an empty name', async () => {
    await expect(agents.operate('getAgentVersion', { name: '' })).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
  });
});
