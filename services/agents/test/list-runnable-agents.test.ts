import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('ListRunnableAgents', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(
      definitionOf('zeta', '1', {
        description: 'Last',
        argumentsSchema: { type: 'object' },
        pricing: { base: 0.5, max: 2, perUnit: { cpuMs: 0.001 } },
      }),
    );
    await agents.publish(definitionOf('alpha', '1'));
    await agents.publish(definitionOf('conversational', '1', { kind: 'ConversationalAgent' }));
    await agents.publish(definitionOf('interactive', '1', { interactiveTools: ['browser'] }));
    await agents.operate('applyAgent', { definition: JSON.stringify(definitionOf('draft', '1')) });
  });
  afterAll(() => agents.service.stop());

  it('lists the names of published functional agents without interactive tools, sorted', async () => {
    expect((await agents.call('listRunnableAgents', {})).agents).toEqual([{ name: 'alpha' }, { name: 'zeta' }]);
  });

  it('adds the fields named by include', async () => {
    const {
      agents: [alpha, zeta],
    } = await agents.call('listRunnableAgents', {
      include: 'description,argumentsSchema,outputSchema,pricing,version',
    });
    expect(zeta).toMatchObject({
      name: 'zeta',
      description: 'Last',
      argumentsSchema: '{"type":"object"}',
      outputSchema: 'null',
      version: 1,
    });
    expect(JSON.parse(zeta?.pricing ?? '')).toEqual({ base: 0.5, max: 2, perUnit: { steps: 0, cpuMs: 0.001 } });
    expect(JSON.parse(alpha?.pricing ?? '')).toEqual({ base: 1, max: 1, perUnit: { steps: 0 } });
  });

  it.each(['name', 'description,secret', '', 'toString', 'version,version', 'pricing,version,pricing'])(
    'rejects include=%s',
    async (include) => {
      await expect(agents.call('listRunnableAgents', { include })).rejects.toMatchObject({
        reason: 'INVALID_REQUEST',
        details: [{ path: '/include' }],
      });
    },
  );

  it('shows no agents of another organization', async () => {
    expect((await agents.call('listRunnableAgents', {}, { principal: serverToken(newId()) })).agents).toEqual([]);
  });

  it('requires the admin role of a user', async () => {
    const user = { ...serverToken(agents.organizationId), kind: 'USER' as const };
    await expect(agents.call('listRunnableAgents', {}, { principal: user })).rejects.toMatchObject({
      reason: 'ADMIN_REQUIRED',
    });
  });
});
