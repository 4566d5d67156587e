import { startAgents, type Agents } from './fixture.ts';

describe('DeleteSecret', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
  });
  afterAll(() => agents.service.stop());

  it('deletes both values; the name is free again, and the deletion is in the audit trail', async () => {
    for (const value of ['one', 'two'])
      await agents.operate('setSecret', { name: 'gone', value, overlapSeconds: 3_600 });
    await agents.operate('deleteSecret', { name: 'gone' });
    const values = () => agents.deps().secrets.values(agents.organizationId, 'gone', new Date().toISOString());
    expect(await values()).toEqual([]);
    await agents.operate('setSecret', { name: 'gone', value: 'three', overlapSeconds: 3_600 });
    expect(await values()).toEqual(['three']);
    expect((await agents.events()).map(({ data }) => data.action)).toContain('secret.delete');
  });

  it('answers 404 for an unknown name', async () => {
    await expect(agents.operate('deleteSecret', { name: 'missing' })).rejects.toMatchObject({ reason: 'NOT_FOUND' });
  });
});
