import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('GetAgentExecution', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
    await agents.publish(definitionOf('echo', '$'));
  });
  afterAll(() => agents.service.stop());

  it('shows the whole record', async () => {
    const run = await agents.run('echo', { b: 1, a: [null] });
    const { agentExecution } = await agents.call('getAgentExecution', { id: run.agentExecutionId });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(agentExecution).toMatchObject({
      id: run.agentExecutionId,
      sessionId: run.sessionId,
      agent: 'echo',
      agentVersion: 1,
      status: 'succeeded',
      args: '{"b":1,"a":[null]}',
      output: run.output,
      error: undefined,
      messages: run.messages,
      actor: { kind: 'server_token', id: expect.any(String), name: 'ci token' },
      charge: 1,
      createdAt: time,
      startedAt: time,
      finishedAt: time,
      requestId: expect.any(String),
      traceId: undefined,
    });
    expect(JSON.parse(agentExecution?.usage ?? '')).toEqual({ steps: expect.any(Number), cpuMs: expect.any(Number) });
  });

  it('is found by its id in upper case, too', async () => {
    const { agentExecutionId: id } = await agents.run('echo', {});
    expect((await agents.call('getAgentExecution', { id: id.toUpperCase() })).agentExecution?.id).toBe(id);
  });

  it('answers the same 404 for unknown ids, malformed ones and those of another organization', async () => {
    const { agentExecutionId } = await agents.run('echo', {});
    const failure = (id: string, organizationId = agents.organizationId) =>
      agents
        .call('getAgentExecution', { id }, { principal: serverToken(organizationId) })
        .catch(({ reason, message, facts, details }) => JSON.stringify({ reason, message, facts, details }));
    const failures = await Promise.all([
      failure(newId()),
      failure('x'),
      failure(''),
      failure(agentExecutionId, newId()),
    ]);
    expect(failures[0]).toContain('NOT_FOUND');
    expect(new Set(failures).size).toBe(1);
  });
});
